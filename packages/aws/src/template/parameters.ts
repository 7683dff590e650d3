/**
 * The parameters of the template. Their defaults are those of the options, so that a parameter
 * that is not sent means the same as an option that is not set.
 */

import { SCHEMA_VERSION } from "@zae-limiter/limiter/domain/version.ts";
import { FUNCTION_SUFFIXES, type LambdaName } from "../lambda/function-names.ts";
import {
  type OptionName,
  STACK_DEFAULTS,
  STACK_OPTION_ENTRIES,
  type StackOption,
} from "../options/stack-option-table.ts";
import { POLICY_NAME_PARAMETERS, ROLE_NAME_PARAMETERS } from "../options/stack-parameters.ts";
import type { CfnParameter } from "./cfn.ts";

const { lambdaTimeout, lambdaDurationThresholdPct } = STACK_DEFAULTS;

function text(description: string, more: Partial<CfnParameter> = {}): CfnParameter {
  return { Type: "String", Description: description, Default: "", ...more };
}

/** Returns a parameter; CloudFormation has texts and numbers, and numbers cannot be absent. */
function optionParameter({ type, help, allowed, default: value }: StackOption): CfnParameter {
  const isNumber = type === "number" && value !== undefined;
  return {
    Type: isNumber ? "Number" : "String",
    Description: help,
    Default: isNumber ? Number(value) : String(value ?? ""),
    ...allowed,
  };
}

/** Numbers that may also be absent, for which CloudFormation has only texts. */
export const OPTIONAL_NUMBERS: ReadonlySet<string> = new Set(
  STACK_OPTION_ENTRIES.flatMap(([, { type, parameter, default: value }]) =>
    type === "number" && value === undefined && parameter !== undefined ? [parameter] : [],
  ),
);

/** Parameters that are not an option, after the option they belong to. */
const FOLLOWING: Partial<Record<OptionName, Readonly<Record<string, CfnParameter>>>> = {
  lambdaDurationThresholdPct: {
    LambdaDurationThreshold: {
      Type: "Number",
      Description: "Milliseconds an invocation may take on average before the alarm",
      Default: lambdaTimeout * 10 * lambdaDurationThresholdPct,
      MinValue: 1,
      MaxValue: 900_000,
    },
    LambdaCodeBucket: text(
      "Bucket of the packages that lambda-export wrote; empty: code comes later",
    ),
    AggregatorCodeKey: text("Key of the aggregator's package in that bucket"),
    ProvisionerCodeKey: text("Key of the provisioner's package in that bucket"),
    AggregatorSuffix: suffix("aggregator"),
    ProvisionerSuffix: suffix("provisioner"),
  },
};

/** In the order in which they are printed. */
export const PARAMETERS: Readonly<Record<string, CfnParameter>> = {
  SchemaVersion: text("Version of the layout of the table", { Default: SCHEMA_VERSION }),
  ...Object.fromEntries(
    STACK_OPTION_ENTRIES.flatMap(([name, option]) => [
      ...(option.parameter === undefined ? [] : [[option.parameter, optionParameter(option)]]),
      ...Object.entries(FOLLOWING[name] ?? {}),
    ]),
  ),
  ...nameParameters(ROLE_NAME_PARAMETERS),
  ...nameParameters(POLICY_NAME_PARAMETERS),
};

/**
 * Returns the suffix: function names have at most 64 characters, so a long stack needs a short one.
 */
function suffix(lambda: LambdaName): CfnParameter {
  const { usual, short } = FUNCTION_SUFFIXES[lambda];
  return text(`End of the name of the ${lambda}`, {
    Default: usual,
    AllowedValues: [usual, short],
  });
}

function nameParameters(names: Readonly<Record<string, string>>): Record<string, CfnParameter> {
  return Object.fromEntries(
    Object.entries(names).map(([component, name]) => [
      name,
      text(`Instead of <stack>-${component}`),
    ]),
  );
}
