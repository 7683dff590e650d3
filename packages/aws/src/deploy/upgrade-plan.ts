/** Plans an upgrade: the code, the tags and the migrations that are missing. */

import { StackOperationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { CLIENT_VERSION } from "@zae-limiter/limiter/domain/version.ts";
import type { VersionRecord } from "@zae-limiter/limiter/records/version-record.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import type { Aws } from "../client/aws.ts";
import { MissingServiceError } from "../client/aws-failure.ts";
import { LAMBDA_NAMES, type LambdaName } from "../lambda/function-names.ts";
import {
  type DeployedFunction,
  type DeployedLambdas,
  findFunctions,
  isCurrent,
  isNewer,
  isNode,
  newerNote,
} from "../lambda/lambda-code.ts";
import { lambdaPackagePath } from "../lambda/lambda-package.ts";
import {
  type MigrationPlan,
  type PendingMigration,
  planMigrations,
} from "../migrations/migrations.ts";
import { findStack, type Stack } from "../stack/stack.ts";
import { hasDiscoveryTags } from "../stack/stack-tags.ts";
import { isOurs } from "./ownership.ts";

/** Said where there is a table without a stack. */
const NO_STACKS_NOTE = "There is no stack behind this endpoint: only the table is upgraded";

/** The work of an upgrade. */
export interface UpgradePlan {
  /** `undefined`: the table says nothing about itself. */
  readonly version: VersionRecord | undefined;
  /** False where the endpoint has only DynamoDB. */
  readonly hasStacks: boolean;
  /** The functions whose code is to be replaced. */
  readonly code: readonly LambdaName[];
  /** Whether the stack lacks the tags it is found by. */
  readonly tags: boolean;
  readonly migrations: MigrationPlan;
  /** Migrations that are left for another time, because only the code is wanted. */
  readonly migrationsLeft: readonly PendingMigration[];
  /** Whether the record does not name the Lambda's version. */
  readonly record: boolean;
  /** Notes on parts that stay although they are not of this version. */
  readonly notes: readonly string[];
}

/** The parts of a deployment besides the table. */
export interface DeployedAt {
  /** False where the endpoint has only DynamoDB: there is a table, and nothing else to upgrade. */
  readonly hasStacks: boolean;
  readonly stack: Stack | undefined;
  /** As they were found. */
  readonly lambdas: DeployedLambdas;
}

/** The part of a request that a plan depends on. */
interface UpgradeWish {
  readonly stackName: string;
  readonly force?: boolean;
  readonly lambdaOnly?: boolean;
}

/** Returns what an upgrade has to do, and what it leaves alone. */
export async function planUpgrade(
  aws: Aws,
  store: ItemStore,
  { stack, lambdas, hasStacks }: DeployedAt,
  version: VersionRecord | undefined,
  { stackName, force = false, lambdaOnly = false }: UpgradeWish,
): Promise<UpgradePlan> {
  const migrations = await planMigrations(store);
  const aggregator = lambdas.get("aggregator");
  const isTagged = stack === undefined || (!force && hasDiscoveryTags(stackName, stack.tags));
  return {
    version,
    hasStacks,
    code: outdatedLambdas(lambdas, force),
    // A stack that holds our table among other things must not pass for one of ours.
    tags: !lambdaOnly && !isTagged && (await isOurs(aws, stack)),
    migrations: lambdaOnly ? { ...migrations, pending: [] } : migrations,
    migrationsLeft: lambdaOnly ? migrations.pending : [],
    record:
      force || (aggregator !== undefined && version?.aggregatorVersion !== versionOf(aggregator)),
    notes: [
      ...(hasStacks ? [] : [NO_STACKS_NOTE]),
      ...(force
        ? []
        : [...lambdas].flatMap(([name, one]) => (isNewer(one) ? [newerNote(name, one)] : []))),
    ],
  };
}

/** Returns the stack and the functions at an endpoint, which may have only DynamoDB. */
export async function deployedAt(aws: Aws, stackName: string): Promise<DeployedAt> {
  try {
    const stack = await findStack(aws, stackName);
    return { hasStacks: true, stack, lambdas: await findFunctions(aws, stackName, LAMBDA_NAMES) };
  } catch (error) {
    if (!(error instanceof MissingServiceError)) throw error;
    return { hasStacks: false, stack: undefined, lambdas: new Map() };
  }
}

/** Refuses a Lambda of the Python library: our code would fail, and theirs would be lost. */
export function refuseForeignCode(stackName: string, lambdas: DeployedLambdas): void {
  for (const [name, found] of lambdas) {
    if (isNode(found)) continue;
    throw new StackOperationError(
      stackName,
      `its ${name} is that of the Python library (${found.runtime ?? "an image"}, ` +
        `${found.handler ?? "no handler"}); nothing was changed. Upgrade it with the tools of that ` +
        `library, or run zae-limiter stack deploy --name ${stackName} first, which replaces it`,
    );
  }
}

/** Returns the version that serves the table once the code is uploaded. */
export function versionOf(found: DeployedFunction): string {
  return isNewer(found) ? found.version : CLIENT_VERSION;
}

/** Returns the version for the tags of the stack, which passes them to its Lambdas. */
export function stackVersion({ force }: UpgradeWish, lambdas: DeployedLambdas): string {
  const newer = force === true ? undefined : [...lambdas.values()].find(isNewer);
  return newer === undefined ? CLIENT_VERSION : versionOf(newer);
}

/** Returns the Lambdas to update: those of another version; newer ones only with --force. */
function outdatedLambdas(lambdas: DeployedLambdas, force: boolean): LambdaName[] {
  return [...lambdas].flatMap(([name, found]) => {
    if (lambdaPackagePath(name) === undefined) return [];
    return force || !(isNewer(found) || isCurrent(found, name)) ? [name] : [];
  });
}
