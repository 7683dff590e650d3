/** Computes what a deployment would send to CloudFormation. Changes nothing. */

import { defined } from "@zae-limiter/limiter/base/defined.ts";
import type { Aws } from "../client/aws.ts";
import type { LambdaName } from "../lambda/function-names.ts";
import { findFunctions, isCurrent, isNewer, isNode, newerNote } from "../lambda/lambda-code.ts";
import { lambdaPackage } from "../lambda/lambda-package.ts";
import { checkStackOptions } from "../options/check-stack-options.ts";
import type { StackOptions } from "../options/stack-options.ts";
import { deployedOptions } from "../options/stack-parameters.ts";
import {
  type DeployedTable,
  deployedTable,
  missingIndex,
  templateAround,
  templateWithIndex,
} from "../stack/deployed-table.ts";
import { checkAdoptable, describeTable, refuseProjectionChange } from "../stack/live-table.ts";
import type { Stack } from "../stack/stack.ts";
import { LAMBDA_VERSION_TAG, settableTags } from "../stack/stack-tags.ts";
import { stackTemplate } from "../template/template.ts";
import { type Intent, intentFor } from "./plan.ts";

export interface Draft {
  readonly intent: Intent;
  readonly template: object;
  /** A table of that name is there without a stack, and becomes part of the new one. */
  readonly adopts: boolean;
  /** The table gets this index, and nothing else happens. */
  readonly addsIndex: string | undefined;
  /** The Lambdas that the stack will have and that do not run the code of this version. */
  readonly code: readonly LambdaName[];
  /** The Lambdas with code of the Python library, whose versions are not ours to compare with. */
  readonly foreignCode: readonly LambdaName[];
}

/** The request for a deployment. */
interface Wish {
  readonly stackName: string;
  readonly given: StackOptions;
  readonly reset: boolean;
}

/** Drafts a new stack; its table may exist. */
export async function draftCreation(aws: Aws, { stackName, given }: Wish): Promise<Draft> {
  const live = await describeTable(aws, stackName);
  const projection =
    live === undefined ? undefined : checkAdoptable(stackName, live, given.gsi2Projection);
  const adopted: StackOptions = projection === "ALL" ? { gsi2Projection: projection } : {};
  const intent = intentFor(stackName, { ...adopted, ...given }, undefined, false);
  return {
    intent,
    template: stackTemplate({ isKept: live !== undefined }),
    adopts: live !== undefined,
    addsIndex: undefined,
    code: presentLambdas(intent.options),
    foreignCode: [],
  };
}

/** Drafts a change of a stack. */
export async function draftUpdate(
  aws: Aws,
  { stackName, given, reset }: Wish,
  deployed: Stack,
): Promise<Draft> {
  const table = await deployedTable(aws, stackName);
  const index = await missingIndex(aws, stackName, table);
  if (index !== undefined && table !== undefined) {
    const template = templateWithIndex(stackName, table, index);
    const intent = asItIs(deployed);
    const nothing = { adopts: false, code: [], foreignCode: [] };
    return { intent, template, addsIndex: index.name, ...nothing };
  }
  const projection = projectionOf(deployed, table);
  const intent = intentFor(stackName, reset ? kept(given, projection) : given, deployed, reset);
  refuseProjectionChange(projection, intent.parameters.GSI2Projection);
  const code = await codeIn(aws, stackName, presentLambdas(intent.options));
  return {
    intent: {
      ...intent,
      notes: [...intent.notes, ...code.notes],
      tags: { ...intent.tags, ...code.tags },
    },
    template: templateAround(table),
    adopts: false,
    addsIndex: undefined,
    code: code.outdated,
    foreignCode: code.foreign,
  };
}

/** Returns the Lambdas of a stack with these options. */
export function enabledLambdas(options: StackOptions): LambdaName[] {
  const { enableAggregator, enableProvisioner, createIam } = checkStackOptions(options);
  return [
    ...(enableAggregator ? (["aggregator"] as const) : []),
    ...(enableProvisioner && createIam ? (["provisioner"] as const) : []),
  ];
}

/** Returns the Lambdas whose code is present; missing code is reported before a stack needs it. */
function presentLambdas(options: StackOptions): LambdaName[] {
  const lambdas = enabledLambdas(options);
  for (const lambda of lambdas) lambdaPackage(lambda);
  return lambdas;
}

/** Returns which code the Lambdas run, and what to upload. */
async function codeIn(aws: Aws, stackName: string, lambdas: readonly LambdaName[]) {
  const found = [...(await findFunctions(aws, stackName, lambdas))];
  const foreign = found.filter(([, running]) => !isNode(running)).map(([lambda]) => lambda);
  const fine = found.filter(
    ([lambda, running]) => isNode(running) && (isCurrent(running, lambda) || isNewer(running)),
  );
  const newer = found.flatMap(([lambda, running]) =>
    isNode(running) && isNewer(running) ? [{ lambda, running }] : [],
  );
  // The stack hands its tags on to the Lambdas, so they must name the version that runs there.
  return {
    foreign,
    outdated: lambdas.filter((lambda) => fine.every(([name]) => name !== lambda)),
    notes: newer.map(({ lambda, running }) => newerNote(lambda, running)),
    tags: defined({ [LAMBDA_VERSION_TAG]: newer[0]?.running.version }),
  };
}

/** Returns options that do not reset a property that cannot be changed. */
function kept(given: StackOptions, projection: string | undefined): StackOptions {
  if (given.gsi2Projection !== undefined) return given;
  if (projection !== "ALL" && projection !== "KEYS_ONLY") return given;
  return { ...given, gsi2Projection: projection };
}

/** Returns an intent that changes nothing. */
function asItIs({ parameters, tags }: Stack): Intent {
  return {
    options: deployedOptions(parameters),
    notes: [],
    parameters: {},
    kept: Object.keys(parameters),
    tags: settableTags(tags),
  };
}

/** Returns the projection of GSI2, from the parameter of our stacks or the template of others. */
function projectionOf({ parameters }: Stack, table: DeployedTable | undefined): string | undefined {
  if (parameters.GSI2Projection !== undefined) return parameters.GSI2Projection;
  const indexes = table?.properties.GlobalSecondaryIndexes;
  if (!Array.isArray(indexes)) return undefined;
  type Index = { IndexName?: string; Projection?: { ProjectionType?: unknown } };
  const found = (indexes as Index[]).find(({ IndexName }) => IndexName === "GSI2");
  const projection = found?.Projection?.ProjectionType;
  return typeof projection === "string" ? projection : undefined;
}
