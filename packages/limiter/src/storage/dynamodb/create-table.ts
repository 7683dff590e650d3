/** Creates the table, for local DynamoDB and for tests. Stacks on AWS come from a template. */

import { setTimeout as pause } from "node:timers/promises";
import { systemRandom } from "../../base/random.ts";
import { type Deadline, systemClock } from "../../base/time.ts";
import { InfrastructureNotFoundError, RateLimiterUnavailable } from "../../domain/errors/errors.ts";
import { CallListeners } from "../call-listeners.ts";
import { INDEXES, TTL_ATTRIBUTE } from "../table.ts";
import type { DynamoConnection } from "./connection.ts";
import { Calls } from "./transport/calls.ts";
import type { Input } from "./transport/operations.ts";
import { SdkTransport } from "./transport/sdk-transport.ts";

/** A table needs seconds to come and to go. */
const TIMEOUT_MS = 120_000;
const POLL_MS = 100;
const LSI_COUNT = 5;
const STREAM = { StreamEnabled: true, StreamViewType: "NEW_AND_OLD_IMAGES" } as const;

export interface CreateTableOptions extends DynamoConnection {
  readonly table: string;
  /** `ALL` as in tables of the Python library; `KEYS_ONLY` when absent. */
  readonly gsi2Projection?: "ALL" | "KEYS_ONLY";
  /** Adds the five unused local indexes that tables of the Python library have. */
  readonly lsis?: boolean;
  /** False where nothing reads the stream: local DynamoDB gets slower with each of its records. */
  readonly stream?: boolean;
}

/** Creates the table and waits until it can be used. A table that is there stays as it is. */
export async function createTable(options: CreateTableOptions): Promise<void> {
  await withCalls(options, async (calls, deadline) => {
    const create = async () => calls.read("CreateTable", tableInput(options), { deadline });
    await create().catch(unlessNamed("ResourceInUseException"));
    await until(deadline, () => isActive(calls, deadline));
    await enableTtl(calls, deadline);
  });
}

/**
 * Deletes the table and waits until it is gone. A table that is not there is no error.
 *
 * @internal Only tests use it.
 */
export async function deleteTable(options: DynamoConnection & { table: string }): Promise<void> {
  await withCalls(options, async (calls, deadline) => {
    const TableName = calls.table;
    try {
      const remove = async () => calls.read("DeleteTable", { TableName }, { deadline });
      await remove().catch(unlessNamed("ResourceInUseException"));
      await until(deadline, async () => {
        await calls.read("DescribeTable", { TableName }, { deadline });
        return false;
      });
    } catch (error) {
      if (!(error instanceof InfrastructureNotFoundError)) throw error;
    }
  });
}

async function isActive(calls: Calls, deadline: Deadline): Promise<boolean> {
  try {
    const { Table } = await calls.read("DescribeTable", { TableName: calls.table }, { deadline });
    const indexes = Table?.GlobalSecondaryIndexes ?? [];
    return (
      Table?.TableStatus === "ACTIVE" &&
      indexes.every(({ IndexStatus = "ACTIVE" }) => IndexStatus === "ACTIVE")
    );
  } catch (error) {
    // A table that has just been created is not yet known everywhere.
    if (error instanceof InfrastructureNotFoundError) return false;
    throw error;
  }
}

async function withCalls(
  options: DynamoConnection & { readonly table: string },
  work: (calls: Calls, deadline: Deadline) => Promise<void>,
): Promise<void> {
  const calls = new Calls(new SdkTransport(options, TIMEOUT_MS, systemClock), {
    table: options.table,
    timeoutMs: TIMEOUT_MS,
    maxAttempts: Number.MAX_SAFE_INTEGER,
    random: systemRandom,
    listeners: new CallListeners(),
  });
  try {
    await work(calls, await calls.start("CreateTable"));
  } finally {
    await calls.close();
  }
}

function tableInput(options: CreateTableOptions): Input<"CreateTable"> {
  const { table, gsi2Projection, lsis, stream = true } = options;
  const local = Array.from({ length: lsis === true ? LSI_COUNT : 0 }, (_, index) => index + 1);
  const attributes = [
    ...["PK", "SK"],
    ...INDEXES.flatMap(({ partition, sort }) => [partition, sort]),
    ...local.map((number) => `LSI${number}SK`),
  ];
  return {
    TableName: table,
    BillingMode: "PAY_PER_REQUEST",
    ...(stream ? { StreamSpecification: STREAM } : {}),
    AttributeDefinitions: attributes.map((name) => ({ AttributeName: name, AttributeType: "S" })),
    KeySchema: keySchema("PK", "SK"),
    GlobalSecondaryIndexes: INDEXES.map(({ name, partition, sort, projection }) => ({
      IndexName: name,
      KeySchema: keySchema(partition, sort),
      Projection: {
        ProjectionType: name === "GSI2" ? (gsi2Projection ?? projection) : projection,
      },
    })),
    ...(local.length > 0 && {
      LocalSecondaryIndexes: local.map((number) => ({
        IndexName: `LSI${number}`,
        KeySchema: keySchema("PK", `LSI${number}SK`),
        Projection: { ProjectionType: number % 2 === 1 ? "ALL" : "KEYS_ONLY" },
      })),
    }),
  };
}

function keySchema(partition: string, sort: string) {
  return [
    { AttributeName: partition, KeyType: "HASH" as const },
    { AttributeName: sort, KeyType: "RANGE" as const },
  ];
}

async function enableTtl(calls: Calls, deadline: Deadline): Promise<void> {
  const TableName = calls.table;
  const { TimeToLiveDescription } = await calls.read(
    "DescribeTimeToLive",
    { TableName },
    { deadline },
  );
  const status = TimeToLiveDescription?.TimeToLiveStatus;
  if (status === "ENABLED" || status === "ENABLING") return;
  const TimeToLiveSpecification = { AttributeName: TTL_ATTRIBUTE, Enabled: true };
  await calls
    .read("UpdateTimeToLive", { TableName, TimeToLiveSpecification }, { deadline })
    // Another client has just switched it on.
    .catch(unlessNamed("ValidationException"));
}

async function until(deadline: Deadline, done: () => Promise<boolean>): Promise<void> {
  while (!(await done())) {
    if (deadline.leftMs < POLL_MS) {
      throw new RateLimiterUnavailable("The table was not ready in time", { reason: "timeout" });
    }
    await pause(POLL_MS);
  }
}

function unlessNamed(name: string): (error: unknown) => void {
  return (error) => {
    if (((error as Error).cause as Error | undefined)?.name !== name) throw error;
  };
}
