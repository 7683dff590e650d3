/** A table as DynamoDB describes it. */

import type { Timer } from "@zae-limiter/limiter/base/time.ts";
import { StackOperationError, ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { INDEXES } from "@zae-limiter/limiter/storage/table.ts";
import type { Aws } from "../client/aws.ts";
import type { Output } from "../client/aws-actions.ts";
import { isRefusal } from "../client/aws-failure.ts";

export type LiveTable = NonNullable<Output<"dynamodb:DescribeTable">["Table"]>;

const POLL_MS = 5000;
const OUR_KEYS = "PK,SK";
const BY_HAND = " with aws dynamodb update-table";

/** Describes a table; `undefined` where there is none. */
export async function describeTable(aws: Aws, name: string): Promise<LiveTable | undefined> {
  try {
    return (await aws.send("dynamodb:DescribeTable", { TableName: name })).Table ?? {};
  } catch (error) {
    if (isRefusal(error, "ResourceNotFoundException")) return undefined;
    throw error;
  }
}

/** Returns whether a table has the keys and indexes that only this library uses. */
export function isLimiterTable(table: LiveTable): boolean {
  const indexes = indexesOf(table);
  return keysOf(table) === OUR_KEYS && indexes.has("GSI1") && indexes.has("GSI2");
}

function keysOf({ KeySchema = [] }: LiveTable): string {
  return KeySchema.map(({ AttributeName }) => AttributeName).join();
}

/** Returns the projection of each index, by its name. */
export function indexesOf({ GlobalSecondaryIndexes = [] }: LiveTable): Map<string, string> {
  return new Map(
    GlobalSecondaryIndexes.map(({ IndexName = "", Projection }) => [
      IndexName,
      Projection?.ProjectionType ?? "",
    ]),
  );
}

/**
 * Refuses a table that cannot become part of a new stack: CloudFormation takes it over as it is, so
 * it must be what the stack describes. Returns what GSI2 copies.
 */
export function checkAdoptable(
  name: string,
  table: LiveTable,
  wantedProjection: string | undefined,
): "KEYS_ONLY" | "ALL" {
  const keys = keysOf(table);
  const indexes = indexesOf(table);
  const missing = INDEXES.find((index) => !indexes.has(index.name));
  const stream = table.StreamSpecification?.StreamViewType;
  const problem =
    (keys !== OUR_KEYS &&
      `is keyed by ${keys || "nothing"} instead of ${OUR_KEYS}; it is not one of ours`) ||
    (missing !== undefined && `lacks the index ${missing.name}; add it first${BY_HAND}`) ||
    (stream !== "NEW_AND_OLD_IMAGES" &&
      `has a stream of ${stream ?? "nothing"} instead of NEW_AND_OLD_IMAGES; change it first${BY_HAND}`);
  if (problem !== false) {
    throw new StackOperationError(
      name,
      `there is a table of that name without a stack, and it ${problem}. Or deploy under another name`,
    );
  }
  const projection = indexes.get("GSI2") === "ALL" ? "ALL" : "KEYS_ONLY";
  refuseProjectionChange(projection, wantedProjection);
  return projection;
}

/** Refuses another projection: AWS cannot change it; the index would have to be created again. */
export function refuseProjectionChange(has: string | undefined, wanted: string | undefined): void {
  if (has === undefined || wanted === undefined || has === wanted) return;
  throw new ValidationError(
    "gsi2_projection",
    wanted,
    `the table has ${has}, and AWS cannot change what an index copies; deploy under another name`,
  );
}

/** Waits until an index is filled, which takes long for a large table. */
export async function indexFilled(
  aws: Aws,
  table: string,
  index: string,
  timer: Timer,
): Promise<void> {
  for (;;) {
    const found = await describeTable(aws, table);
    const { IndexStatus: status = "ACTIVE" } =
      found?.GlobalSecondaryIndexes?.find(({ IndexName }) => IndexName === index) ?? {};
    if (found === undefined || status === "ACTIVE") return;
    await timer.sleep(POLL_MS);
  }
}

/** Returns whether a table of that name exists, of any origin. */
export async function tableExists(aws: Aws, name: string): Promise<boolean> {
  return (await describeTable(aws, name)) !== undefined;
}
