/** Items in a DynamoDB table. */

import type { TransactWriteItem } from "@aws-sdk/client-dynamodb";
import { type Random, systemRandom } from "../../base/random.ts";
import { stoppable } from "../../base/stoppable.ts";
import { type Clock, systemClock } from "../../base/time.ts";
import { ValidationError } from "../../domain/errors/errors.ts";
import { decodeItem, encodeItem } from "../attribute-value.ts";
import { CallListeners } from "../call-listeners.ts";
import { checkTransaction, checkWrite, keyOfWrite, type ManyWrites } from "../checks.ts";
import { checkKey, type Item, type Key, keyOf } from "../item.ts";
import type {
  CallListener,
  CallOptions,
  Change,
  ChangeRecord,
  ChangesOptions,
  Condition,
  Query,
  ReadManyOptions,
  ReadOptions,
  TransactOptions,
  TransactResult,
  Write,
  WriteResult,
} from "../item-store.ts";
import type { ScanOptions, ScanStore } from "../scan-store.ts";
import { getMany, writeMany } from "./batch.ts";
import { type DynamoConnection, TRANSPORTS } from "./connection.ts";
import { Expressions } from "./expression.ts";
import { readChanges } from "./feed.ts";
import { queryItems, scanItems } from "./query.ts";
import { TableStream } from "./table-stream.ts";
import { Calls, type Written } from "./transport/calls.ts";
import { LeanTransport } from "./transport/lean-transport.ts";
import { SdkTransport } from "./transport/sdk-transport.ts";
import { StoredItem } from "./transport/stored-item.ts";
import type { Transport } from "./transport/transport.ts";
import { UpdateShapes } from "./update-shape.ts";

const DEFAULT_TIMEOUT_MS = 2000;

export interface DynamoItemStoreOptions extends DynamoConnection {
  readonly table: string;
  /** How long a call may take, repetitions included; 2000 when absent. */
  readonly timeoutMs?: number | undefined;
  /** The most attempts of one request; as many as fit into the time when absent. */
  readonly maxAttempts?: number | undefined;
  readonly random?: Random | undefined;
  /** Clock that the server's time is compared with. Deadlines always run in real time. */
  readonly clock?: Clock | undefined;
  /** Called with every request and its consumed capacity, which is requested only for it. */
  readonly onCall?: CallListener | undefined;
}

export class DynamoItemStore implements ScanStore {
  readonly #transport: Transport;
  readonly #calls: Calls;
  readonly #listeners: CallListeners;
  readonly #updates: UpdateShapes;
  /** Shapes of updates that also ask for the consumed capacity. */
  readonly #pricedUpdates: UpdateShapes;
  readonly #closing = new AbortController();

  constructor(options: DynamoItemStoreOptions) {
    const {
      table,
      timeoutMs = DEFAULT_TIMEOUT_MS,
      maxAttempts = Number.MAX_SAFE_INTEGER,
    } = options;
    checkPositive("timeoutMs", timeoutMs);
    checkPositive("maxAttempts", maxAttempts);
    this.#transport = transportFor(options, timeoutMs);
    this.#listeners = new CallListeners(options.onCall);
    this.#calls = new Calls(this.#transport, {
      table,
      timeoutMs,
      maxAttempts,
      random: options.random ?? systemRandom,
      listeners: this.#listeners,
    });
    const fields = { ...ON_FAILURE, ReturnValues: "ALL_NEW" } as const;
    this.#updates = new UpdateShapes(table, fields);
    this.#pricedUpdates = new UpdateShapes(table, { ...fields, ReturnConsumedCapacity: "INDEXES" });
  }

  listen(listener: CallListener): () => void {
    return this.#listeners.add(listener);
  }

  /** How far the server's clock is ahead, to the second; `undefined` before the first answer. */
  get serverDateSkewMs(): number | undefined {
    return this.#transport.serverDateSkewMs;
  }

  async get(key: Key, options: ReadOptions = {}): Promise<Item | undefined> {
    checkKey(key);
    const input = {
      ...this.#at(key),
      ...(options.consistent === true && { ConsistentRead: true }),
    };
    const { Item } = await this.#calls.read("GetItem", input, options);
    return Item === undefined ? undefined : decodeItem(Item);
  }

  async getMany(
    keys: readonly Key[],
    options: ReadManyOptions = {},
  ): Promise<(Item | undefined)[]> {
    return getMany(this.#calls, keys, options);
  }

  async put(item: Item, condition?: Condition, options: CallOptions = {}): Promise<WriteResult> {
    checkWrite({ put: item });
    const expressions = new Expressions();
    const input = {
      TableName: this.#calls.table,
      Item: encodeItem(item),
      ...expressions.condition(condition),
      ...expressions.attributes(),
      ...ON_FAILURE,
    };
    return resultOf(await this.#calls.write("PutItem", input, options));
  }

  async update(
    key: Key,
    change: Change,
    condition?: Condition,
    options: CallOptions = {},
  ): Promise<WriteResult> {
    const updates = this.#listeners.isEmpty ? this.#updates : this.#pricedUpdates;
    const request = updates.prepare(key, change, condition);
    return resultOf(await this.#calls.write("UpdateItem", request, options));
  }

  async delete(key: Key, condition?: Condition, options: CallOptions = {}): Promise<WriteResult> {
    checkWrite({ delete: key });
    const expressions = new Expressions();
    const input = {
      ...this.#at(key),
      ...expressions.condition(condition),
      ...expressions.attributes(),
      ...ON_FAILURE,
      ReturnValues: "ALL_OLD",
    } as const;
    return resultOf(await this.#calls.write("DeleteItem", input, options));
  }

  async transact(writes: readonly Write[], options: TransactOptions = {}): Promise<TransactResult> {
    checkTransaction(writes);
    const [first, ...others] = writes;
    if (first === undefined) return { ok: true };
    const { token } = options;
    if (others.length === 0 && token === undefined && !("check" in first)) {
      const { ok, item } = await this.#write(first, options);
      return ok ? { ok } : { ok, failures: new Map([[0, { item }]]) };
    }
    const input = {
      TransactItems: writes.map((write) => compileWrite(this.#calls.table, write)),
      ...(token !== undefined && { ClientRequestToken: token }),
    };
    const repetition = token === undefined ? "once" : "repeatable";
    const result = await this.#calls.write("TransactWriteItems", input, options, repetition);
    return result.ok ? { ok: true } : result;
  }

  async writeMany({ puts = [], deletes = [] }: ManyWrites): Promise<void> {
    await writeMany(this.#calls, puts, deletes);
  }

  query(query: Query): AsyncIterable<Item> {
    return queryItems(this.#calls, query);
  }

  scan(options: ScanOptions = {}): AsyncIterable<Item> {
    return scanItems(this.#calls, options);
  }

  changes(options: ChangesOptions = {}): AsyncIterable<ChangeRecord> {
    const { from = "now", signal } = options;
    const read = (ended: AbortSignal) => readChanges(this.#calls, from, ended);
    return { [Symbol.asyncIterator]: () => stoppable(read, this.#closing.signal, signal) };
  }

  /** Returns the feed of changes shard by shard. */
  stream(): TableStream {
    return new TableStream(this.#calls);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#calls.close();
  }

  /** Does what a transaction of one write does, at half the cost. */
  #write(write: Exclude<Write, { check: Key }>, options: CallOptions): Promise<WriteResult> {
    if ("put" in write) return this.put(write.put, write.condition, options);
    if ("delete" in write) return this.delete(write.delete, write.condition, options);
    return this.update(write.update, write.change, write.condition, options);
  }

  #at(key: Key) {
    return { TableName: this.#calls.table, Key: encodeItem({ ...keyOf(key) }) };
  }
}

const ON_FAILURE = { ReturnValuesOnConditionCheckFailure: "ALL_OLD" } as const;

function resultOf(result: Written<"PutItem" | "UpdateItem" | "DeleteItem">): WriteResult {
  if (!result.ok) return { ok: false, item: result.failures.get(0)?.item };
  const Attributes: object | undefined = result.output.Attributes;
  if (Attributes === undefined) return { ok: true, item: undefined };
  const isRead = Attributes instanceof StoredItem;
  return { ok: true, item: isRead ? Attributes.item : decodeItem({ ...Attributes }) };
}

/** Makes the transport. A request handler of the caller needs the SDK; else it is the lean one. */
function transportFor(options: DynamoItemStoreOptions, timeoutMs: number): Transport {
  const { transport, requestHandler, clock = systemClock } = options;
  if (transport !== undefined && !TRANSPORTS.includes(transport)) {
    throw new ValidationError("transport", transport, `expected ${TRANSPORTS.join(" or ")}`);
  }
  const chosen = transport ?? (requestHandler === undefined ? "lean" : "sdk");
  if (chosen === "sdk") return new SdkTransport(options, timeoutMs, clock);
  if (requestHandler === undefined) return new LeanTransport(options, timeoutMs, clock);
  throw new ValidationError("transport", transport, "a requestHandler needs the transport sdk");
}

function checkPositive(field: string, value: number): void {
  if (Number.isFinite(value) && value > 0) return;
  throw new ValidationError(field, value, `expected a positive number, got ${value}`);
}

/**
 * A transaction takes no update without an expression. Removing what cannot be there changes
 * nothing; it is the only expression that does.
 */
const NO_CHANGE: Change = { remove: ["zae-limiter/no-change"] };

/** Compiles one write of a transaction; if its condition fails, the stored item is returned. */
function compileWrite(table: string, write: Write): TransactWriteItem {
  const expressions = new Expressions();
  const where = { TableName: table, ReturnValuesOnConditionCheckFailure: "ALL_OLD" } as const;
  const Key = encodeItem({ ...keyOf(keyOfWrite(write)) });
  if ("put" in write) {
    const condition = expressions.condition(write.condition);
    const Item = encodeItem(write.put);
    return { Put: { ...where, Item, ...condition, ...expressions.attributes() } };
  }
  if ("update" in write) {
    const { UpdateExpression = expressions.update(NO_CHANGE).UpdateExpression } =
      expressions.update(write.change);
    const condition = expressions.condition(write.condition);
    const placeholders = expressions.attributes();
    return { Update: { ...where, Key, UpdateExpression, ...condition, ...placeholders } };
  }
  const { ConditionExpression } = expressions.condition(write.condition);
  const placeholders = expressions.attributes();
  if ("check" in write) {
    return { ConditionCheck: { ...where, Key, ConditionExpression, ...placeholders } };
  }
  return { Delete: { ...where, Key, ConditionExpression, ...placeholders } };
}
