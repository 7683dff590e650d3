/** The parameters of the template, and the names of its roles and policies. */

import { floorDiv } from "@zae-limiter/limiter/core/integers.ts";
import { show } from "@zae-limiter/limiter/domain/check.ts";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { checkStackName } from "@zae-limiter/limiter/domain/names.ts";
import { SCHEMA_VERSION } from "@zae-limiter/limiter/domain/version.ts";
import { FUNCTION_SUFFIXES, suffixParameters } from "../lambda/function-names.ts";
import { checkStackOptions } from "./check-stack-options.ts";
import {
  type OptionName,
  STACK_OPTION_ENTRIES,
  STACK_OPTIONS,
  type StackOption,
} from "./stack-option-table.ts";
import type { StackOptions } from "./stack-options.ts";

const ROLE_NAME_LENGTH_MAX = 64;
const POLICY_NAME_LENGTH_MAX = 128;

/** The parameter for the name of each role; the role's own ends with the component. */
export const ROLE_NAME_PARAMETERS = {
  aggr: "AggregatorRoleName",
  app: "AppRoleName",
  admin: "AdminRoleName",
  read: "ReadOnlyRoleName",
  prov: "ProvisionerRoleName",
} as const;

/** The parameter for the name of each policy; the policy's own ends with the component. */
export const POLICY_NAME_PARAMETERS = {
  acq: "AcquireOnlyPolicyName",
  full: "FullAccessPolicyName",
  read: "ReadOnlyPolicyName",
  "ns-acq": "NamespaceAcquirePolicyName",
  "ns-full": "NamespaceFullAccessPolicyName",
  "ns-read": "NamespaceReadOnlyPolicyName",
} as const;

export type RoleComponent = keyof typeof ROLE_NAME_PARAMETERS;
export type PolicyComponent = keyof typeof POLICY_NAME_PARAMETERS;

/** The options that are a parameter of the same meaning. */
const PARAMETER_OPTIONS = STACK_OPTION_ENTRIES.flatMap(([name, { parameter, type }]) =>
  parameter === undefined ? [] : [{ name, parameter, type }],
);
type Scalar = string | number | boolean;

const THRESHOLD = "LambdaDurationThreshold";
/** 1000 milliseconds a second, 100 percent. */
const THRESHOLD_PER_PERCENT_SECOND = 10;

/** Returns the name of a role, or `undefined` without a format, where the template chooses it. */
export function roleName(
  options: StackOptions,
  stackName: string,
  component: RoleComponent,
): string | undefined {
  const format = options.roleNameFormat;
  if (format === undefined) return undefined;
  return fillName("role_name", format, stackName, component, ROLE_NAME_LENGTH_MAX);
}

/** Returns the name of a policy, or `undefined` without a format, where the template chooses it. */
export function policyName(
  options: StackOptions,
  stackName: string,
  component: PolicyComponent,
): string | undefined {
  const format = options.policyNameFormat;
  if (format === undefined) return undefined;
  return fillName("policy_name", format, stackName, component, POLICY_NAME_LENGTH_MAX);
}

/**
 * Returns the parameters of the template. An option that is not set is left out, so that the
 * default of the template holds; names of roles, policies and functions need the name of the stack.
 */
export function stackParameters(
  options: StackOptions,
  stackName?: string,
): Readonly<Record<string, string>> {
  const checked = checkStackOptions(options);
  return present({
    ...Object.fromEntries(
      PARAMETER_OPTIONS.map(({ name, parameter }) => [parameter, checked[name] as Scalar]),
    ),
    [THRESHOLD]:
      checked.lambdaTimeout * THRESHOLD_PER_PERCENT_SECOND * checked.lambdaDurationThresholdPct,
    ...(stackName === undefined ? {} : nameParameters(checked, checkStackName(stackName))),
  });
}

/** Returns the version of the layout and the parameters of the given options: no defaults. */
export function givenParameters(
  options: StackOptions,
  stackName: string,
): Readonly<Record<string, string>> {
  const parameters = stackParameters(options, stackName);
  const given = new Set([
    ...Object.values(FUNCTION_SUFFIXES).map(({ parameter }) => parameter as string),
    ...Object.entries(options).flatMap(([name, value]) => {
      if (value === undefined) return [];
      const { parameter }: StackOption = STACK_OPTIONS[name as OptionName];
      return [parameter, ...derived(name)];
    }),
  ]);
  const kept = Object.entries(parameters).filter(([name]) => given.has(name));
  return { SchemaVersion: SCHEMA_VERSION, ...Object.fromEntries(kept) };
}

/** Returns the deployed options, from the parameters of the stack. */
export function deployedOptions(parameters: Readonly<Record<string, string>>): StackOptions {
  const options: Record<string, Scalar> = {};
  for (const { name, parameter, type } of PARAMETER_OPTIONS) {
    const text = parameters[parameter];
    if (text !== undefined && text !== "") options[name] = decode(type, text);
  }
  const threshold = Number(parameters[THRESHOLD]);
  const seconds = Number(options.lambdaTimeout);
  const percent = floorDiv(threshold || 0, THRESHOLD_PER_PERCENT_SECOND * (seconds || 1));
  if (percent >= 1 && percent <= 100) options.lambdaDurationThresholdPct = percent;
  return options;
}

/** Parameters that follow from an option besides its own. */
function derived(option: string): readonly string[] {
  switch (option) {
    case "lambdaTimeout":
    case "lambdaDurationThresholdPct":
      return [THRESHOLD];
    case "roleNameFormat":
      return Object.values(ROLE_NAME_PARAMETERS);
    case "policyNameFormat":
      return Object.values(POLICY_NAME_PARAMETERS);
    default:
      return [];
  }
}

function decode(type: StackOption["type"], text: string): Scalar {
  if (type === "number") return Number(text);
  return type === "boolean" ? text === "true" : text;
}

function nameParameters(
  options: StackOptions,
  stackName: string,
): Record<string, string | undefined> {
  const roles = entries(ROLE_NAME_PARAMETERS);
  const policies = entries(POLICY_NAME_PARAMETERS);
  return {
    ...Object.fromEntries(roles.map(([part, name]) => [name, roleName(options, stackName, part)])),
    ...Object.fromEntries(
      policies.map(([part, name]) => [name, policyName(options, stackName, part)]),
    ),
    ...suffixParameters(stackName),
  };
}

function entries<Name extends string>(record: Readonly<Record<Name, string>>): [Name, string][] {
  return Object.entries(record) as [Name, string][];
}

function present(
  parameters: Readonly<Record<string, Scalar | undefined>>,
): Readonly<Record<string, string>> {
  const set = Object.entries(parameters).filter(([, value]) => value !== undefined);
  return Object.fromEntries(set.map(([name, value]) => [name, String(value)]));
}

function fillName(
  field: string,
  format: string,
  stackName: string,
  component: string,
  lengthMax: number,
): string {
  // A function, because `$` means something in the text of a replacement.
  const name = format.replace("{}", () => `${stackName}-${component}`);
  const excess = name.length - lengthMax;
  if (excess <= 0) return name;
  throw new ValidationError(
    field,
    name,
    `${show(name)} is ${excess} characters longer than the ${lengthMax} that AWS allows: with this ` +
      `format the stack's name may have at most ${Math.max(0, stackName.length - excess)}`,
  );
}
