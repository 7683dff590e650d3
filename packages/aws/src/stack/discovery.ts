/** Finds the limiters of a region: by their tags, and by their names where there are none. */

import { isoSeconds } from "@zae-limiter/limiter/core/windows.ts";
import { type Aws, type AwsConnection, connectAws } from "../client/aws.ts";
import { LimiterInfo } from "./limiter-info.ts";
import { everyStack, findStack, isShell, type Stack } from "./stack.ts";
import {
  isMarked,
  LAMBDA_VERSION_TAG,
  MANAGED_TAG,
  NAME_TAG,
  SCHEMA_VERSION_TAG,
  TYPE_TAG,
  userNameOf,
  VERSION_TAG,
} from "./stack-tags.ts";

const DEFAULT_TYPE = "limiter";

/**
 * Lists the limiters of a region, by the names their users know.
 *
 * @example
 * ```ts
 * import { listLimiters } from 'zae-limiter/infra';
 * await listLimiters({ endpoint: 'http://127.0.0.1:1', maxAttempts: 1 })
 *   .catch((error) => console.log(error.code)); // ZAEL_UNAVAILABLE
 * ```
 */
export async function listLimiters(
  connection: AwsConnection = {},
  { type = DEFAULT_TYPE }: { readonly type?: string } = {},
): Promise<LimiterInfo[]> {
  const { limiters } = await limitersThere(connection);
  return limiters.filter(({ stackType }) => stackType === type);
}

/** Returns all limiters, and their region. */
export async function limitersThere(
  connection: AwsConnection,
): Promise<{ readonly region: string; readonly limiters: LimiterInfo[] }> {
  const aws = connectAws(connection);
  try {
    const region = await aws.region();
    return { region, limiters: await findLimiters(aws, region) };
  } finally {
    aws.close();
  }
}

export async function findLimiters(aws: Aws, region: string): Promise<LimiterInfo[]> {
  const tagged = await taggedStacks(aws);
  const known = new Set(tagged.map(({ name }) => name));
  const others: Stack[] = [];
  for await (const stack of everyStack(aws)) {
    if (!known.has(stack.name) && isMarked(stack.name, stack.tags)) others.push(stack);
  }
  return [...tagged, ...others]
    .filter((stack) => stack.status !== "DELETE_COMPLETE" && !isShell(stack))
    .map((stack) => toInfo(stack, region))
    .sort((left, right) => (left.userName < right.userName ? -1 : 1));
}

/** Returns the stacks with our tags. Without the permission for that, all stacks are read. */
async function taggedStacks(aws: Aws): Promise<Stack[]> {
  try {
    const names = await taggedNames(aws);
    const stacks = await Promise.all(names.map((name) => findStack(aws, name)));
    return stacks.filter((stack) => stack !== undefined);
  } catch {
    return [];
  }
}

async function taggedNames(aws: Aws): Promise<string[]> {
  const names: string[] = [];
  let next: string | undefined;
  do {
    const page = await aws.send("tag:GetResources", {
      ResourceTypeFilters: ["cloudformation:stack"],
      TagFilters: [{ Key: MANAGED_TAG.key, Values: [MANAGED_TAG.value] }],
      ...(next === undefined ? {} : { PaginationToken: next }),
    });
    for (const { ResourceARN = "" } of page.ResourceTagMappingList ?? []) {
      const name = /:stack\/([^/]+)\//.exec(ResourceARN)?.[1];
      if (name !== undefined) names.push(name);
    }
    next = page.PaginationToken === "" ? undefined : page.PaginationToken;
  } while (next !== undefined);
  return [...new Set(names)];
}

function toInfo(stack: Stack, region: string): LimiterInfo {
  const { tags } = stack;
  return new LimiterInfo({
    stackName: stack.name,
    userName: tags[NAME_TAG] ?? userNameOf(stack.name),
    region,
    stackStatus: stack.status,
    creationTime: timeText(stack.createdAt) ?? "",
    lastUpdatedTime: timeText(stack.updatedAt),
    version: tags[VERSION_TAG],
    lambdaVersion: tags[LAMBDA_VERSION_TAG],
    schemaVersion: tags[SCHEMA_VERSION_TAG],
    stackType: tags[TYPE_TAG] ?? DEFAULT_TYPE,
  });
}

function timeText(date: Date | undefined): string | undefined {
  const ms = date?.getTime();
  return ms === undefined || Number.isNaN(ms) ? undefined : isoSeconds(ms);
}
