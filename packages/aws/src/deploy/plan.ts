/** Plans the changes of a deployment: settings, tags and resources. */

import { defined } from "@zae-limiter/limiter/base/defined.ts";
import { StackOperationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { checkStackName } from "@zae-limiter/limiter/domain/names.ts";
import { SCHEMA_VERSION } from "@zae-limiter/limiter/domain/version.ts";
import type { LambdaName } from "../lambda/function-names.ts";
import { lambdaPackagePath } from "../lambda/lambda-package.ts";
import { checkStackOptions } from "../options/check-stack-options.ts";
import type { StackOptions } from "../options/stack-options.ts";
import { deployedOptions, givenParameters, stackParameters } from "../options/stack-parameters.ts";
import { isShell, type Stack } from "../stack/stack.ts";
import { isAwsTag, isManagedTag, settableTags, stackTags } from "../stack/stack-tags.ts";
import { PARAMETERS } from "../template/parameters.ts";
import type { ResourceChange } from "./change-set.ts";

/** A setting before and after; `undefined` where there is none. */
export interface SettingChange {
  /** The name of the parameter or tag. */
  readonly name: string;
  /** The value that is deployed. */
  readonly before: string | undefined;
  readonly after: string | undefined;
}

/**
 * The changes that a deployment would make.
 *
 * @example
 * ```ts
 * import type { DeployPlan } from 'zae-limiter/infra';
 * const isHarmless = (plan: DeployPlan) => plan.resources.every(({ replaced }) => !replaced);
 * ```
 */
export interface DeployPlan {
  /** `nothing`: the stack is as it should be. */
  readonly kind: "create" | "update" | "nothing";
  readonly stackName: string;
  readonly region: string;
  /** Whose it is; `undefined` where AWS has not said it. */
  readonly account: string | undefined;
  /** For a new stack: what was chosen; otherwise: what changes. */
  readonly settings: readonly SettingChange[];
  readonly tags: readonly SettingChange[];
  readonly resources: readonly ResourceChange[];
  /** A table of that name is there without a stack, and becomes part of the new one. */
  readonly adoptsTable: boolean;
  /** An index that the table lacks. It is added alone; everything else follows when it is there. */
  readonly addsIndex: string | undefined;
  /** The Lambdas whose code is uploaded. */
  readonly code: readonly LambdaName[];
  /** All that is in force afterwards. */
  readonly options: StackOptions;
  /** Decisions that were made without an option of the caller. */
  readonly notes: readonly string[];
}

/** The template, parameters and tags that are sent to CloudFormation. */
export interface Intent {
  readonly options: StackOptions;
  readonly notes: readonly string[];
  readonly parameters: Readonly<Record<string, string>>;
  /** Parameters that keep their value. */
  readonly kept: readonly string[];
  readonly tags: Readonly<Record<string, string>>;
}

const TABLE_TYPE = "AWS::DynamoDB::Table";
const DESTRUCTIVE: readonly string[] = ["Remove", "Dynamic"];
const NEW_ATTRIBUTES = "AttributeDefinitions";

/**
 * Returns what to send. Options that are not given stay as they are deployed; with `reset` they go
 * back to their defaults.
 */
export function intentFor(
  stackName: string,
  given: StackOptions,
  deployed: Stack | undefined,
  reset: boolean,
): Intent {
  checkStackName(stackName);
  const before = deployed === undefined || isShell(deployed) ? undefined : deployed;
  const kept = before === undefined || reset ? {} : deployedOptions(before.parameters);
  const { options, notes } = feasible({ ...kept, ...defined(given) });
  const userTags = { ...(reset ? {} : userTagsOf(before)), ...options.tags };
  const { tags: _, ...settings } = options;
  const parameters =
    before !== undefined && reset
      ? { SchemaVersion: SCHEMA_VERSION, ...stackParameters(settings, stackName) }
      : givenParameters(settings, stackName);
  const names = Object.keys(before?.parameters ?? {});
  return {
    options,
    notes,
    parameters,
    kept: reset
      ? []
      : names.filter((name) => Object.hasOwn(PARAMETERS, name) && !Object.hasOwn(parameters, name)),
    tags: stackTags(stackName, checkStackOptions({ tags: userTags }).tags ?? {}),
  };
}

/** Returns how settings change. Settings that are not sent are the defaults of the template. */
export function settingChanges(intent: Intent, deployed: Stack | undefined): SettingChange[] {
  const names = Object.keys(PARAMETERS);
  const changes = names.map((name) => ({
    name,
    before: deployed === undefined ? undefined : (deployed.parameters[name] ?? defaultOf(name)),
    after: intent.kept.includes(name)
      ? deployed?.parameters[name]
      : (intent.parameters[name] ?? (deployed === undefined ? undefined : defaultOf(name))),
  }));
  return changes.filter(({ before, after }) => before !== after);
}

export function tagChanges(intent: Intent, deployed: Stack | undefined): SettingChange[] {
  const names = new Set([...Object.keys(deployed?.tags ?? {}), ...Object.keys(intent.tags)]);
  return [...names]
    .filter((name) => !isAwsTag(name))
    .map((name) => ({ name, before: deployed?.tags[name], after: intent.tags[name] }))
    .filter(({ before, after }) => before !== after);
}

/**
 * Refuses a change that would delete the table, whatever the reason. CloudFormation says "maybe"
 * for new attributes, which every new index brings; those alone replace nothing.
 */
export function refuseLoss(
  stackName: string,
  resources: readonly ResourceChange[],
  addsIndex: boolean,
): void {
  const lost = resources.find(
    ({ type, action, replaced, replacedIfNeeded: [property, ...others] }) =>
      type === TABLE_TYPE &&
      (DESTRUCTIVE.includes(action) || replaced) &&
      !(addsIndex && action === "Modify" && property === NEW_ATTRIBUTES && others.length === 0),
  );
  if (lost === undefined) return;
  const what = lost.properties.length === 0 ? "" : ` (${lost.properties.join(", ")})`;
  throw new StackOperationError(
    stackName,
    `this would replace the table and lose what is in it${what}; nothing was changed. Deploy ` +
      "under another name instead",
  );
}

/** Returns the options that this stack can have, with a note for each that was left out. */
function feasible(options: StackOptions): {
  readonly options: StackOptions;
  readonly notes: readonly string[];
} {
  const checked = checkStackOptions(options);
  const notes: string[] = [];
  let { enableAggregator, enableProvisioner } = checked;
  if (enableAggregator && !checked.createIam && checked.aggregatorRoleArn === undefined) {
    enableAggregator = false;
    notes.push(
      "The aggregator is left out: without IAM it needs a role of yours (--aggregator-role-arn)",
    );
  }
  if (options.enableProvisioner === undefined) enableProvisioner = mayProvision();
  return {
    options: {
      ...options,
      ...(enableAggregator === checked.enableAggregator ? {} : { enableAggregator }),
      ...(enableProvisioner === checked.enableProvisioner ? {} : { enableProvisioner }),
    },
    notes,
  };
}

/** Returns whether the code of the provisioner is installed. */
function mayProvision(): boolean {
  return lambdaPackagePath("provisioner") !== undefined;
}

function defaultOf(name: string): string {
  return String(PARAMETERS[name]?.Default ?? "");
}

/** Returns the tags that are not ours. */
function userTagsOf(stack: Stack | undefined): Record<string, string> {
  const theirs = Object.entries(settableTags(stack?.tags ?? {}));
  return Object.fromEntries(theirs.filter(([key]) => !isManagedTag(key)));
}
