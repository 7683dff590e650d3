/** Brings what is deployed to this version: the code, the tags, the table and its record. */

import { defined } from "@zae-limiter/limiter/base/defined.ts";
import { StackOperationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { checkStackName } from "@zae-limiter/limiter/domain/names.ts";
import { CLIENT_VERSION } from "@zae-limiter/limiter/domain/version.ts";
import {
  readVersion,
  type VersionRecord,
  writeVersion,
} from "@zae-limiter/limiter/records/version-record.ts";
import type { DynamoOptions } from "@zae-limiter/limiter/repository/options.ts";
import type { Aws } from "../client/aws.ts";
import { functionNameOf } from "../lambda/function-names.ts";
import { findFunction, uploadCode } from "../lambda/lambda-code.ts";
import {
  type MigrationProgress,
  type MigrationReport,
  runMigrations,
} from "../migrations/migrations.ts";
import { findStack, type Stack } from "../stack/stack.ts";
import { firstCause, latestEvent, watchStack } from "../stack/stack-events.ts";
import { hasDiscoveryTags, settableTags, stackTags } from "../stack/stack-tags.ts";
import { type OpenRecords, openRecords } from "../stack/table-records.ts";
import {
  changeSetName,
  createChangeSet,
  executeChangeSet,
  type NewChangeSet,
  orDiscard,
} from "./change-set.ts";
import { refuseUnusable } from "./compatibility.ts";
import { type DeployContext, deployContext } from "./deploy-context.ts";
import {
  type DeployedAt,
  deployedAt,
  planUpgrade,
  refuseForeignCode,
  stackVersion,
  type UpgradePlan,
  versionOf,
} from "./upgrade-plan.ts";

/** Which stack or table to upgrade, and how. */
export interface UpgradeRequest {
  /** The stack, which is also the name of the table. */
  readonly stackName: string;
  /** How to reach AWS. */
  readonly connection: DynamoOptions;
  /** Only the code of the Lambdas, and what the record says about it. */
  readonly lambdaOnly?: boolean;
  /** Also what is up to date or newer, and a table that says nothing about itself. */
  readonly force?: boolean;
  /** Says what would be done; migrations are tried out without writing. */
  readonly dryRun?: boolean;
  /** The name that goes into the version record. */
  readonly updatedBy?: string;
  /** Sees what there is to do, and decides. */
  readonly confirm?: (plan: UpgradePlan) => Promise<boolean>;
  /** Receives a sentence for each step. */
  readonly onStep?: (step: string) => void;
  /** Receives how far a migration is. */
  readonly onProgress?: (progress: MigrationProgress) => void;
  /** Stops at the next checkpoint of a migration. */
  readonly signal?: AbortSignal;
}

/** Result of an upgrade. */
export interface Upgraded {
  /** `stopped`: by the signal, at a checkpoint of a migration; the next upgrade continues. */
  readonly outcome: "done" | "planned" | "current" | "declined" | "stopped" | "uninitialised";
  /** The plan of this upgrade. */
  readonly plan: UpgradePlan;
  /** `undefined`: not checked. */
  readonly tagsAdded: boolean | undefined;
  /** Why the tags could not be set; nothing else depends on them. */
  readonly tagsError: Error | undefined;
  /** The report of the migrations; `undefined` when none ran. */
  readonly migrations: MigrationReport | undefined;
  /** The version record afterwards; `undefined` when none was written. */
  readonly version: VersionRecord | undefined;
}

/**
 * Brings a stack to this version. The template is not touched: that is what deploying does.
 *
 * @example
 * ```ts
 * import { upgradeStack } from 'zae-limiter/infra';
 * await upgradeStack({ stackName: 'my.app', connection: { region: 'eu-west-1' } })
 *   .catch((error) => console.log(error.code, error.field)); // ZAEL_VALIDATION name
 * ```
 */
export async function upgradeStack(request: UpgradeRequest): Promise<Upgraded> {
  const stackName = checkStackName(request.stackName);
  const { connection, signal } = request;
  const context = deployContext({ connection, ...defined({ signal }) });
  const { aws } = context;
  const records = await openRecords(stackName, connection);
  try {
    await refuseUnusable(records.store);
    const version = await readVersion(records.store);
    const deployed = await deployedAt(aws, stackName);
    refuseForeignCode(stackName, deployed.lambdas);
    const plan = await planUpgrade(aws, records.store, deployed, version, request);
    return await carryOut(request, { context, records, ...deployed }, plan);
  } finally {
    aws.close();
    await records.close();
  }
}

interface Site extends DeployedAt {
  readonly context: DeployContext;
  readonly records: OpenRecords;
}

async function carryOut(request: UpgradeRequest, site: Site, plan: UpgradePlan): Promise<Upgraded> {
  const result = {
    plan,
    tagsAdded: undefined,
    tagsError: undefined,
    migrations: undefined,
    version: plan.version,
  };
  // With --force, scan a table that has no version record and write one.
  const insists = request.force === true && request.lambdaOnly !== true;
  if (plan.migrations.schemaVersion === undefined && !insists) {
    return { ...result, outcome: "uninitialised" };
  }
  const work = plan.code.length + plan.migrations.pending.length;
  if (work === 0 && !plan.tags && !plan.record) return { ...result, outcome: "current" };
  const { store } = site.records;
  const run = { ...runOptions(request), ...(request.dryRun === true ? { dryRun: true } : {}) };
  if (request.dryRun === true) {
    const migrations =
      plan.migrations.pending.length === 0 ? undefined : await runMigrations(store, run);
    return { ...result, outcome: isStopped(migrations) ? "stopped" : "planned", migrations };
  }
  if ((await request.confirm?.(plan)) === false) return { ...result, outcome: "declined" };
  const done = await steps(request, site, plan);
  return { ...result, ...done, outcome: isStopped(done.migrations) ? "stopped" : "done" };
}

function isStopped(migrations: MigrationReport | undefined): boolean {
  return migrations?.completed === false;
}

/**
 * Runs the steps, the code first: it works with the old table; old code may fail with the new one.
 */
async function steps(
  request: UpgradeRequest,
  { context, records, stack, lambdas, hasStacks }: Site,
  plan: UpgradePlan,
): Promise<Pick<Upgraded, "tagsAdded" | "tagsError" | "migrations" | "version">> {
  const { stackName, onStep } = request;
  const { aws, timer } = context;
  for (const lambda of plan.code) {
    onStep?.(`Uploading the code of the ${lambda}`);
    await uploadCode(aws, stackName, lambda, timer, request.force ? "all" : "older");
  }
  let tagsAdded: boolean | undefined;
  let tagsError: Error | undefined;
  if (plan.tags && stack !== undefined) {
    onStep?.("Checking the tags of the stack");
    try {
      tagsAdded = await ensureTags(context, stack, stackVersion(request, lambdas));
    } catch (error) {
      request.signal?.throwIfAborted();
      tagsError = error as Error;
    }
  }
  const { store, clock } = records;
  const pending = plan.migrations.pending.length > 0;
  if (pending) onStep?.(`Migrating the table to schema ${plan.migrations.targetVersion}`);
  const migrations = pending ? await runMigrations(store, runOptions(request)) : undefined;
  // After a stop nothing more is written; the next upgrade writes the record.
  const version = isStopped(migrations)
    ? await readVersion(store)
    : await writeVersion(store, await lambdaRecord(hasStacks ? aws : undefined, request), clock());
  return { tagsAdded, tagsError, migrations, version };
}

/** Says nothing about a Lambda that is not there. */
async function lambdaRecord(aws: Aws | undefined, { stackName, updatedBy }: UpgradeRequest) {
  const aggregator =
    aws === undefined
      ? undefined
      : await findFunction(aws, functionNameOf(stackName, "aggregator"));
  return {
    ...(aggregator === undefined
      ? {}
      : { aggregatorVersion: versionOf(aggregator), lambdaVersion: null }),
    updatedBy: updatedBy ?? `client:${CLIENT_VERSION}`,
  };
}

function runOptions({ onProgress, signal, updatedBy }: UpgradeRequest) {
  return defined({ onProgress, signal, updatedBy });
}

/**
 * Gives a stack the tags by which it is found, and changes nothing else. Returns true when tags
 * were missing and have been added, false when they were there before; throws when they cannot be
 * added. `lambdaVersion` is the version that the Lambdas run.
 */
export async function ensureTags(
  context: DeployContext,
  stack: Stack,
  lambdaVersion?: string,
): Promise<boolean> {
  if (hasDiscoveryTags(stack.name, stack.tags)) return false;
  const { aws, timer } = context;
  const wanted: NewChangeSet = {
    stackName: stack.name,
    name: changeSetName(context),
    type: "UPDATE",
    template: "previous",
    parameters: {},
    // What is not named would fall back to the template's default.
    kept: Object.keys(stack.parameters),
    tags: stackTags(stack.name, settableTags(stack.tags), lambdaVersion),
    adopt: false,
  };
  const changeSet = await createChangeSet(aws, wanted, timer);
  if (changeSet.changes === undefined) {
    const now = await findStack(aws, stack.id);
    // Another deployment may have set them in the meantime.
    if (now !== undefined && hasDiscoveryTags(stack.name, now.tags)) return false;
    throw new StackOperationError(
      stack.name,
      "the tags are missing, and CloudFormation reports nothing to change",
    );
  }
  const before = await orDiscard(aws, wanted, changeSet, async () => {
    const latest = await latestEvent(aws, stack.id);
    await executeChangeSet(aws, stack.name, changeSet);
    return latest;
  });
  const { stack: after, events } = await watchStack(aws, stack.id, before, context, "changed");
  if (after?.status === "UPDATE_COMPLETE") return true;
  const reason = firstCause(events)?.reason ?? after?.status ?? "the stack is gone";
  throw new StackOperationError(stack.name, `the tags could not be set: ${reason}`);
}
