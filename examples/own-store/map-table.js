// A store in a map. Your database has better ways for each of these five methods: a transaction for
// `commit`, an index for `page`, a table of changes for `log`. What they must do is the same.

import { InfrastructureError, ValidationError } from "zae-limiter";
import { ITEM_TABLE } from "zae-limiter/testing";

const TOKEN_KEPT_MS = 600_000;

// What is stored. Tables with the same one are clients of one database.
export class MapDatabase {
  cells = new Map(); // text of a key -> { key, item, revision }
  log = []; // records, the oldest first; a position is an index, from 1
  tokens = new Map(); // token -> when it was committed
  revision = 0;
}

export class MapTable {
  [ITEM_TABLE] = true;
  #database;
  #isClosed = false;

  constructor(database = new MapDatabase()) {
    this.#database = database;
  }

  // In a database: one statement, or one transaction, so that all cells are of one moment.
  async read(keys) {
    this.#refuseClosed();
    return keys.map(({ PK, SK }) => this.#cellOf({ PK, SK }));
  }

  // In a database: one transaction that locks the keys in `reads`, those of missing rows too, then
  // compares, then writes.
  async commit({ reads, writes, token, nowMs }) {
    this.#refuseClosed();
    const usedAt = this.#database.tokens.get(token);
    if (usedAt !== undefined && nowMs - usedAt < TOKEN_KEPT_MS) return "repeated";
    const isChanged = ({ key, revision }) => this.#cellOf(key).revision !== revision;
    if (reads.some(isChanged)) return "changed";
    if (writes.length === 0) return "done";
    if (token !== undefined) this.#database.tokens.set(token, nowMs);
    for (const { key, before, after, isLogged } of writes) {
      this.#store(key, after);
      if (isLogged) this.#append(key, before, after, nowMs, false);
    }
    this.#removeExpired(nowMs, 2 * writes.length);
    return "done";
  }

  // In a database: a query on the primary key, or on one of four indexes.
  async page({ index, partition, from, before, descending, after, limit }) {
    this.#refuseClosed();
    const order = index === undefined ? ["SK"] : [`${index}SK`, "PK", "SK"];
    const partitionKey = index === undefined ? "PK" : `${index}PK`;
    const [sort] = order;
    const direction = descending ? -1 : 1;
    return [...this.#database.cells.values()]
      .map(({ item }) => item)
      .filter((item) => item[partitionKey] === partition && typeof item[sort] === "string")
      .filter((item) => from === undefined || compare(item[sort], from) >= 0)
      .filter((item) => before === undefined || compare(item[sort], before) < 0)
      .filter((item) => after === undefined || compareBy(order, item, after) * direction > 0)
      .sort((one, other) => compareBy(order, one, other) * direction)
      .slice(0, limit);
  }

  // In a database: a table of changes that `commit` appends to. Numbers of a sequence become visible
  // out of order: a reader must not pass a number whose commit is still under way.
  async log(from, limit) {
    this.#refuseClosed();
    const start = this.#startOf(from);
    const records = this.#database.log.slice(start, start + limit);
    return { records, position: positionOf(start + records.length) };
  }

  async close() {
    this.#isClosed = true;
  }

  #cellOf(key) {
    return this.#database.cells.get(textOf(key)) ?? { key, item: undefined, revision: undefined };
  }

  #store(key, item) {
    const { cells } = this.#database;
    this.#database.revision += 1;
    const revision = String(this.#database.revision);
    if (item === undefined) cells.delete(textOf(key));
    else cells.set(textOf(key), { key, item, revision });
  }

  #append(key, before, after, atMs, expired) {
    const position = positionOf(this.#database.log.length + 1);
    const place = { shard: "map", sequence: position, position };
    this.#database.log.push({ key, before, after, atMs, expired, ...place });
  }

  #removeExpired(nowMs, atMost) {
    const isOver = ({ item }) =>
      typeof item.ttl === "number" && item.ttl < Math.floor(nowMs / 1000);
    const expired = [...this.#database.cells.values()].filter(isOver).slice(0, atMost);
    for (const { key, item } of expired) {
      this.#store(key, undefined);
      this.#append(key, item, undefined, nowMs, true);
    }
  }

  #startOf(from) {
    if (from === "oldest") return 0;
    if (from === "now") return this.#database.log.length;
    const start = /^\d+$/.test(from.after) ? Number(from.after) : Number.NaN;
    if (start <= this.#database.log.length) return start;
    throw new ValidationError("position", from.after, "expected the position of a change record");
  }

  #refuseClosed() {
    if (this.#isClosed) throw new InfrastructureError("This store is closed");
  }
}

function textOf({ PK, SK }) {
  return JSON.stringify([PK, SK]);
}

function positionOf(number) {
  return String(number).padStart(16, "0");
}

function compareBy(names, one, other) {
  for (const name of names) {
    const difference = compare(one[name], other[name]);
    if (difference !== 0) return difference;
  }
  return 0;
}

// Keys sort by their bytes in UTF-8, which is not how JavaScript compares texts.
function compare(one, other) {
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}
