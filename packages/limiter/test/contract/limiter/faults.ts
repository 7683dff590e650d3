/** A store that works until a test says otherwise: in memory by a proxy, on engines by a server. */

import type { ServerResponse } from "node:http";
import {
  InfrastructureError,
  InfrastructureNotFoundError,
  RateLimiterUnavailable,
  type UnavailableReason,
} from "@zae-limiter/limiter/domain/errors/errors.ts";
import type { Key } from "@zae-limiter/limiter/storage/item.ts";
import type { ItemStore, Write } from "@zae-limiter/limiter/storage/item-store.ts";
import { ITEM_TABLE, type ItemTable } from "@zae-limiter/limiter/storage/item-table.ts";
import { WARM_BUCKETS, warmBucketsOf } from "@zae-limiter/limiter/storage/warm-buckets.ts";
import {
  drip,
  type FakeAnswer,
  type FakeDynamo,
  type FakeRequest,
  fakeDynamo,
  hang,
  reset,
} from "@zae-limiter/test-engines/fake-dynamodb.ts";

/** One request, identified by its operation and its item. */
export interface Request {
  readonly operation: "get" | "getMany" | "put" | "update" | "delete" | "transact" | "other";
  /** The partition key of the item, or of the first one. */
  readonly partition: string;
}

/** Failures of the infrastructure. */
export type Failure =
  /** Refused, and nothing is written. */
  | "throttled"
  /** The request is executed and its response is lost. */
  | "lost"
  /** Never answered; answered drop by drop; cut off; answered with an error of the server. */
  | "hang"
  | "drip"
  | "reset"
  | "broken";

export type Fault =
  | Failure
  /** Refused for the key range of the item, and nothing is written. */
  | "hot"
  /** Another transaction is on that item, for the moment. */
  | "conflict"
  /** Permissions or the table are missing, or a transaction was cancelled for no known reason. */
  | "denied"
  | "missing"
  | "cancelled";

export class Faults {
  /** Returns the fault of a request; `undefined`: none. */
  rule: (request: Request) => Fault | undefined = () => undefined;
  /** Everything that was asked for. */
  readonly requests: Request[] = [];

  /** The next `count` requests that match fail. */
  next(fault: Fault, matches: (request: Request) => boolean, count = 1): void {
    let left = count;
    this.rule = (request) => {
      if (left === 0 || !matches(request)) return undefined;
      left -= 1;
      return fault;
    };
  }

  /** Whether a request goes wrong. */
  judge(request: Request): Fault | undefined {
    this.requests.push(request);
    return this.rule(request);
  }
}

/** The bucket of an entity. */
export function isBucketOf(entityId: string, ...operations: Request["operation"][]) {
  return ({ operation, partition }: Request): boolean =>
    operations.includes(operation) && partition.includes(`/BUCKET#${entityId}#`);
}

/** A store in memory that fails as the adapter of DynamoDB would report it. */
export function faultyItems(items: ItemStore, faults: Faults): ItemStore {
  return new Proxy<ItemStore>(items, {
    get: (_, operation: keyof ItemStore) => {
      const call = (...parameters: unknown[]) =>
        Reflect.apply((items as Required<ItemStore>)[operation], items, parameters) as unknown;
      if (!isRequest(operation)) return call;
      return async (...parameters: unknown[]) => {
        const lost = passes(faults, { operation, partition: partitionOf(parameters[0]) });
        const result = await call(...parameters);
        if (lost) throw unavailable("timeout", operation === "get");
        return result;
      };
    },
  });
}

/** A table that fails as an adapter would report it. */
export function faultyTable(table: ItemTable, faults: Faults): ItemTable {
  const faulty =
    <Given, Rest extends unknown[], Answer>(
      operation: "getMany" | "transact",
      call: (given: Given, ...rest: Rest) => Promise<Answer>,
    ) =>
    async (given: Given, ...rest: Rest): Promise<Answer> => {
      const lost = passes(faults, { operation, partition: "" });
      const answer = await call(given, ...rest);
      if (lost) throw unavailable("timeout", operation === "getMany");
      return answer;
    };
  const warm = warmBucketsOf(table);
  return {
    [ITEM_TABLE]: true,
    ...(warm && {
      [WARM_BUCKETS]: {
        serverDateSkewMs: undefined,
        consume: faulty("transact", warm.consume.bind(warm)),
        adjust: faulty("transact", warm.adjust.bind(warm)),
      },
    }),
    read: faulty("getMany", table.read.bind(table)),
    commit: faulty("transact", table.commit.bind(table)),
    page: faulty("getMany", table.page.bind(table)),
    log: faulty("getMany", table.log.bind(table)),
    // Other openings use the same table.
    close: async () => undefined,
  };
}

/** Throws the error of the request's fault, or returns whether its answer gets lost. */
function passes(faults: Faults, request: Request): boolean {
  let fault = faults.judge(request);
  // The adapter repeats what met a conflict.
  while (fault === "conflict") fault = faults.judge(request);
  if (fault !== undefined && fault !== "lost") throw REPORTS[fault]();
  return fault === "lost";
}

/** A server in front of an engine. */
export function faultyEndpoint(endpoint: string, faults: Faults): Promise<FakeDynamo> {
  return fakeDynamo({
    to: (request) => {
      const fault = faults.judge(requestOf(request));
      if (fault === "conflict") return conflict(request);
      if (fault === undefined || fault === "lost") {
        return forward(endpoint, request, fault === "lost");
      }
      return ANSWERS[fault];
    },
  });
}

function conflict({ operation }: FakeRequest): FakeAnswer {
  if (operation !== "TransactWriteItems") return { error: "TransactionConflictException" };
  const CancellationReasons = [{ Code: "TransactionConflict" }];
  return { error: "TransactionCanceledException", details: { CancellationReasons } };
}

function forward(endpoint: string, { operation, body }: FakeRequest, lost: boolean): FakeAnswer {
  return (response) => {
    void pass(endpoint, operation, body, response, lost).catch(() => response.destroy());
  };
}

async function pass(
  endpoint: string,
  operation: string,
  body: unknown,
  response: ServerResponse,
  lost: boolean,
): Promise<void> {
  const answer = await fetch(endpoint, {
    method: "POST",
    headers: {
      "content-type": "application/x-amz-json-1.0",
      "x-amz-target": `DynamoDB_20120810.${operation}`,
      "x-amz-date": new Date().toISOString().replace(/[-:]|\.\d+/g, ""),
      authorization:
        "AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request, " +
        "SignedHeaders=host, Signature=0",
    },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  if (lost) {
    response.destroy();
    return;
  }
  response.writeHead(answer.status, { "content-type": "application/x-amz-json-1.0" });
  response.end(text);
}

const OPERATIONS: Readonly<Record<string, Request["operation"]>> = {
  GetItem: "get",
  BatchGetItem: "getMany",
  TransactGetItems: "getMany",
  PutItem: "put",
  UpdateItem: "update",
  DeleteItem: "delete",
  TransactWriteItems: "transact",
};

/** The part of requests that names their item. */
interface Aimed {
  readonly Key?: { PK?: { S?: string } };
  readonly Item?: { PK?: { S?: string } };
  readonly TransactItems?: readonly { Update?: { Key?: { PK?: { S?: string } } } }[];
}

function requestOf(request: FakeRequest): Request {
  const { operation } = request;
  const body = request.body as Aimed;
  const key = body.Key ?? body.Item ?? body.TransactItems?.[0]?.Update?.Key;
  return { operation: OPERATIONS[operation] ?? "other", partition: key?.PK?.S ?? "" };
}

function isRequest(operation: string): operation is Request["operation"] {
  return Object.values(OPERATIONS).includes(operation as Request["operation"]);
}

function partitionOf(parameter: unknown): string {
  if (!Array.isArray(parameter)) return (parameter as Key).PK;
  const first = parameter[0] as Write | Key | undefined;
  if (first === undefined) return "";
  if ("update" in first) return (first.update as Key).PK;
  return "PK" in first ? first.PK : "";
}

const ANSWERS: Readonly<Record<Exclude<Fault, "lost" | "conflict">, FakeAnswer>> = {
  throttled: { error: "ProvisionedThroughputExceededException" },
  hot: {
    error: "ThrottlingException",
    details: { throttlingReasons: [{ reason: "TableWriteKeyRangeThroughputExceeded" }] },
  },
  hang,
  drip,
  reset,
  broken: { error: "InternalServerError", status: 500 },
  denied: { error: "AccessDeniedException" },
  missing: { error: "ResourceNotFoundException" },
  cancelled: { error: "TransactionCanceledException" },
};

/** Errors that the adapter of DynamoDB makes of these answers. */
const REPORTS: Readonly<Record<keyof typeof ANSWERS, () => Error>> = {
  throttled: () => unavailable("throttled", true),
  hot: () => unavailable("throttled", true, true),
  hang: () => unavailable("timeout", false),
  drip: () => unavailable("timeout", false),
  reset: () => unavailable("network", false),
  broken: () => unavailable("server", false),
  denied: () => new InfrastructureError("a test of missing permissions"),
  missing: () => new InfrastructureNotFoundError("table"),
  cancelled: () => new InfrastructureError("a test of a cancelled transaction"),
};

function unavailable(
  reason: UnavailableReason,
  nothingWritten: boolean,
  keyRange = false,
): RateLimiterUnavailable {
  const cause = new Error(`a test of ${reason}`);
  return new RateLimiterUnavailable("The store failed", {
    reason,
    nothingWritten,
    keyRange,
    cause,
  });
}
