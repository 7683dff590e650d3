/** Change sets: what CloudFormation would do, before it does it. */

import { type Random, randomBytes } from "@zae-limiter/limiter/base/random.ts";
import type { Clock, Timer } from "@zae-limiter/limiter/base/time.ts";
import {
  StackAlreadyExistsError,
  StackOperationError,
} from "@zae-limiter/limiter/domain/errors/errors.ts";
import { type Aws, pagesOf } from "../client/aws.ts";
import type { Input, Output } from "../client/aws-actions.ts";
import { AwsRefusal } from "../client/aws-failure.ts";
import { findStack, isShell } from "../stack/stack.ts";
import { isOvertaken, Overtaken, orOvertaken } from "./overtaken.ts";

const NAME_SUFFIX_BYTES = 4;

/** The change of one resource. */
export interface ResourceChange {
  /** `Add`, `Modify`, `Remove`, as CloudFormation says it. */
  readonly action: string;
  /** The logical id in the template. */
  readonly resource: string;
  /** The type of the resource, such as `AWS::DynamoDB::Table`. */
  readonly type: string;
  /** A new resource replaces it, and the old one is deleted. */
  readonly replaced: boolean;
  /** It leaves the stack, but is not deleted. */
  readonly kept: boolean;
  readonly properties: readonly string[];
  /** Properties that may need a new resource; CloudFormation decides while it works. */
  readonly replacedIfNeeded: readonly string[];
}

export interface ChangeSet {
  readonly id: string;
  readonly stackId: string;
  /** `undefined`: there is nothing to change. */
  readonly changes: readonly ResourceChange[] | undefined;
}

export interface NewChangeSet {
  readonly stackName: string;
  readonly name: string;
  readonly type: "CREATE" | "UPDATE";
  readonly template: { readonly body: string } | { readonly url: string } | "previous";
  readonly parameters: Readonly<Record<string, string>>;
  /** Parameters that keep the value they have. */
  readonly kept: readonly string[];
  readonly tags: Readonly<Record<string, string>>;
  /** An existing table becomes part of the stack. */
  readonly adopt: boolean;
}

const POLL_MS = 500;
const NO_CHANGES = /didn't contain changes|no updates are to be performed/i;

/** Makes a change set and waits until CloudFormation has worked out what it means. */
export async function createChangeSet(
  aws: Aws,
  wanted: NewChangeSet,
  timer: Timer,
): Promise<ChangeSet> {
  const requested = await requestChangeSet(aws, wanted);
  if (requested === undefined) return { id: "", stackId: wanted.stackName, changes: undefined };
  const { Id: id = "", StackId: stackId = "" } = requested;
  const changes = await orDiscard(aws, wanted, { id, stackId }, () =>
    settled(aws, wanted.stackName, id, timer),
  );
  if (changes === undefined) await discardChangeSet(aws, wanted, { id, stackId });
  return { id, stackId, changes };
}

/** Returns what a change set would change, once that is known; `undefined`: nothing. */
async function settled(
  aws: Aws,
  stackName: string,
  id: string,
  timer: Timer,
): Promise<readonly ResourceChange[] | undefined> {
  for (;;) {
    const found = await orOvertaken(stackName, () => describe(aws, stackName, id));
    if (found.status === "CREATE_COMPLETE") return found.changes;
    if (found.status.startsWith("DELETE_")) throw new Overtaken(stackName);
    if (found.status === "FAILED") {
      if (NO_CHANGES.test(found.reason)) return undefined;
      throw new StackOperationError(stackName, `no change set was made: ${found.reason}`);
    }
    await timer.sleep(POLL_MS);
  }
}

/**
 * Runs work on a change set, and deletes the change set when the work fails; the error of the work
 * is thrown. When another client has voided it, there is nothing to delete: the stack is theirs.
 */
export async function orDiscard<Result>(
  aws: Aws,
  wanted: Pick<NewChangeSet, "stackName" | "type">,
  changeSet: Pick<ChangeSet, "id" | "stackId">,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Overtaken)) {
      await discardChangeSet(aws, wanted, changeSet).catch(() => undefined);
    }
    throw error;
  }
}

export async function executeChangeSet(
  aws: Aws,
  stackName: string,
  { id }: { readonly id: string },
): Promise<void> {
  await orOvertaken(stackName, () =>
    aws.send("cloudformation:ExecuteChangeSet", { ChangeSetName: id, StackName: stackName }),
  );
}

/**
 * Deletes the change set, and the empty REVIEW_IN_PROGRESS stack if ours was its only change set:
 * executing another client's change set would turn it into a stack. Not interruptible.
 */
export async function discardChangeSet(
  aws: Aws,
  { stackName, type }: Pick<NewChangeSet, "stackName" | "type">,
  { id, stackId }: { readonly id: string; readonly stackId: string },
): Promise<void> {
  const { unstoppable } = aws;
  let isLast = false;
  try {
    isLast = type === "CREATE" && (await isAloneInShell(unstoppable, stackId, id));
  } finally {
    await deleteChangeSet(unstoppable, stackName, id);
  }
  if (isLast) await unstoppable.send("cloudformation:DeleteStack", { StackName: stackId });
}

/** Returns whether ours is the only change set. Without ours, the stack is another client's. */
async function isAloneInShell(aws: Aws, stackId: string, id: string): Promise<boolean> {
  const stack = await findStack(aws, stackId);
  if (stack === undefined || !isShell(stack)) return false;
  const ids = await changeSetsOf(aws, stackId);
  return ids.includes(id) && ids.every((one) => one === id);
}

async function changeSetsOf(aws: Aws, stackId: string): Promise<string[]> {
  const ids: string[] = [];
  const pages = pagesOf(aws, "cloudformation:ListChangeSets", { StackName: stackId });
  for await (const { Summaries = [] } of pages) {
    // Emulators list those of all stacks.
    const own = Summaries.filter(({ StackId = stackId }) => StackId === stackId);
    ids.push(...own.map(({ ChangeSetId = "" }) => ChangeSetId));
  }
  return ids;
}

async function deleteChangeSet(aws: Aws, stackName: string, id: string): Promise<void> {
  try {
    await aws.send("cloudformation:DeleteChangeSet", { ChangeSetName: id, StackName: stackName });
  } catch (error) {
    if (!isOvertaken(error)) throw error;
  }
}

/** Requests a change set; `undefined` when CloudFormation finds at once that nothing changes. */
async function requestChangeSet(
  aws: Aws,
  wanted: NewChangeSet,
): Promise<Output<"cloudformation:CreateChangeSet"> | undefined> {
  const { stackName, name, type, adopt } = wanted;
  try {
    return await aws.send("cloudformation:CreateChangeSet", {
      StackName: stackName,
      ChangeSetName: name,
      ChangeSetType: type,
      Capabilities: ["CAPABILITY_NAMED_IAM"],
      ...templateInput(wanted.template),
      Parameters: [
        ...Object.entries(wanted.parameters).map(([key, value]) => ({
          ParameterKey: key,
          ParameterValue: value,
        })),
        ...wanted.kept.map((key) => ({ ParameterKey: key, UsePreviousValue: true })),
      ],
      Tags: Object.entries(wanted.tags).map(([Key, Value]) => ({ Key, Value })),
      ...(adopt ? { ImportExistingResources: true } : {}),
    });
  } catch (error) {
    if (error instanceof AwsRefusal && NO_CHANGES.test(error.detail)) return undefined;
    // Another client was faster.
    if (type === "CREATE" && isTaken(error)) throw new StackAlreadyExistsError(stackName);
    throw isOvertaken(error) ? new Overtaken(stackName, error) : error;
  }
}

function templateInput(
  template: NewChangeSet["template"],
): Pick<
  Input<"cloudformation:CreateChangeSet">,
  "TemplateBody" | "TemplateURL" | "UsePreviousTemplate"
> {
  if (template === "previous") return { UsePreviousTemplate: true };
  return "body" in template ? { TemplateBody: template.body } : { TemplateURL: template.url };
}

function isTaken(error: unknown): boolean {
  if (!(error instanceof AwsRefusal)) return false;
  return error.awsCode === "AlreadyExistsException" || /already exists/i.test(error.detail);
}

async function describe(
  aws: Aws,
  stackName: string,
  id: string,
): Promise<{ status: string; reason: string; changes: ResourceChange[] }> {
  const found = { status: "", reason: "", changes: [] as ResourceChange[] };
  const input = { ChangeSetName: id, StackName: stackName };
  for await (const page of pagesOf(aws, "cloudformation:DescribeChangeSet", input)) {
    found.changes.push(...(page.Changes ?? []).flatMap(toChange));
    found.status = page.Status ?? "";
    found.reason = page.StatusReason ?? "";
  }
  return found;
}

type Change = NonNullable<Output<"cloudformation:DescribeChangeSet">["Changes"]>[number];

function toChange({ ResourceChange: change }: Change): ResourceChange[] {
  if (change === undefined) return [];
  const details = change.Details ?? [];
  const named = (from: typeof details) => {
    const names = from.map(({ Target }) => Target?.Name ?? Target?.Attribute);
    return [...new Set(names.filter((name) => name !== undefined))];
  };
  const conditional = details.filter(
    ({ Target }) => Target?.RequiresRecreation === "Conditionally",
  );
  return [
    {
      action: change.Action ?? "",
      resource: change.LogicalResourceId ?? "",
      type: change.ResourceType ?? "",
      replaced: change.Replacement !== undefined && change.Replacement !== "False",
      kept: change.Action === "Remove" && change.PolicyAction === "Retain",
      properties: named(details),
      replacedIfNeeded: change.Replacement === "Conditional" ? named(conditional) : [],
    },
  ];
}

/** Returns a name that no other change set of a stack has, however many are made at once. */
export function changeSetName({ clock, random }: { clock: Clock; random: Random }): string {
  const suffix = Buffer.from(randomBytes(random, NAME_SUFFIX_BYTES)).toString("hex");
  return `zae-limiter-${clock()}-${suffix}`;
}
