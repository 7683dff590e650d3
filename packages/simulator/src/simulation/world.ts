/** The shared parts of a run: time, table, log, checkers, and the first violation. */

import type { Landing, TableCall } from "@zae-limiter/testing/table/call.ts";
import type { Failure } from "@zae-limiter/testing/table/failure.ts";
import {
  SimulatedTable,
  type SimulatedTableOptions,
} from "@zae-limiter/testing/table/simulated-table.ts";
import type { VirtualTime } from "@zae-limiter/testing/time/virtual-time.ts";
import { Books } from "../checkers/books.ts";
import type { ShardImage } from "../checkers/bucket-image.ts";
import { ConfigHistory } from "../checkers/config-history.ts";
import { bucketLandings, Ledger } from "../checkers/ledger.ts";
import { LinkHistory } from "../checkers/links.ts";
import { Moments } from "../checkers/moments.ts";
import { Operations } from "../checkers/operations.ts";
import type { QuotaEdges } from "../checkers/quota-edges.ts";
import { Quotas } from "../checkers/quotas.ts";
import { Refusals } from "../checkers/refusals.ts";
import { Returns } from "../checkers/returns.ts";
import { Shape } from "../checkers/shape.ts";
import { SlotBooks } from "../checkers/slots/slot-books.ts";
import { SlotGrants } from "../checkers/slots/slot-grants.ts";
import { SwitchHistory } from "../checkers/switch-history.ts";
import { Totals } from "../checkers/total.ts";
import { Violation } from "../checkers/violation.ts";
import { EventLog } from "./event-log.ts";

const NO_EDGES: QuotaEdges = { lengthMs: 86_400_000, shiftOf: () => 0 };

export interface WorldOptions {
  readonly time: VirtualTime;
  readonly table: Omit<SimulatedTableOptions, "time">;
  readonly keepsLog: boolean;
  /** `false`: nothing is written down, for runs that are too long for it. */
  readonly logs?: boolean;
  /** Maximum difference of the clocks of two processes. */
  readonly skewMs: number;
  /** After so long every process knows what is stored for levels. */
  readonly knownMs?: number;
  /** Nothing fails and nothing is throttled: every call must be decided. */
  readonly isHealthy?: boolean;
  /** One process makes all calls and all changes, so it can know of all of them. */
  readonly isOnly?: boolean;
  /** A wrong refusal is a violation; otherwise it is only counted. */
  readonly judgesRefusals?: boolean;
  /** The edges of quotas; there are none when absent. */
  readonly edges?: QuotaEdges | undefined;
}

export class World {
  readonly time: VirtualTime;
  readonly table: SimulatedTable;
  readonly log: EventLog;
  readonly books = new Books();
  readonly ledger: Ledger;
  readonly totals: Totals;
  readonly quotas: Quotas;
  readonly shape: Shape;
  readonly links = new LinkHistory();
  readonly switches: SwitchHistory;
  readonly configs: ConfigHistory;
  readonly operations = new Operations();
  readonly slotGrants = new SlotGrants();
  readonly slotBooks: SlotBooks;
  readonly refusals: Refusals;
  /** Resolves when something is wrong. */
  readonly failed: Promise<void>;
  violation: Violation | undefined;
  /** When a request last failed or lost its answer. */
  disturbedAtMs = Number.NEGATIVE_INFINITY;
  readonly isHealthy: boolean;
  readonly judgesRefusals: boolean;
  readonly isOnly: boolean;
  readonly #logs: boolean;
  readonly #moments = new Moments();
  readonly #returns = new Returns();
  /** The first shard of each bucket, as it was last written. */
  readonly #newest = new Map<string, { readonly PK: string; readonly image: ShardImage }>();
  readonly #debts = new Map<string, bigint>();
  #stop: () => void = () => {};

  constructor(options: WorldOptions) {
    const { time, table, keepsLog, logs = true, skewMs } = options;
    this.isHealthy = options.isHealthy === true;
    this.judgesRefusals = options.judgesRefusals === true;
    this.isOnly = options.isOnly === true;
    this.refusals = new Refusals(skewMs);
    this.slotBooks = new SlotBooks(skewMs);
    this.switches = new SwitchHistory(options.knownMs ?? 0);
    this.configs = new ConfigHistory(options.knownMs ?? 0, skewMs);
    this.#logs = logs;
    this.time = time;
    this.table = new SimulatedTable({ ...table, time });
    this.log = new EventLog(() => time.nowMs, keepsLog);
    this.failed = new Promise((resolve) => {
      this.#stop = resolve;
    });
    const debtOf = (bucket: string, name: string) => this.#debts.get(`${bucket} ${name}`) ?? 0n;
    this.ledger = new Ledger(debtOf);
    this.totals = new Totals(debtOf);
    this.quotas = new Quotas(options.edges ?? NO_EDGES, debtOf);
    this.shape = new Shape(skewMs);
    this.table.watch({
      arrived: (call, failure) => this.#arrived(call, failure),
      landed: (call, landings) => this.#landed(call, landings),
      missed: (call, key) => this.#moments.missed(call, key),
      answered: (call) => this.books.answered(call),
      refused: (call, error) => this.#refused(call, error),
      unanswered: (call) => {
        this.disturbedAtMs = time.nowMs;
        this.books.unanswered(call);
      },
    });
  }

  /** Announces an upward adjustment: the bucket may go into debt by that much. */
  allowDebt(bucket: string, limitName: string, milli: number): void {
    const id = `${bucket} ${limitName}`;
    this.#debts.set(id, (this.#debts.get(id) ?? 0n) + BigInt(milli));
  }

  /** Returns the first shard of a bucket as it is stored; `undefined` when there is none. */
  newest(bucket: string): { readonly PK: string; readonly image: ShardImage } | undefined {
    return this.#newest.get(bucket);
  }

  /** Records an error. Only the first counts: later ones may follow from it. */
  fail(error: unknown): void {
    if (this.violation !== undefined) return;
    this.violation =
      error instanceof Violation ? error : new Violation("crash", "a call", stackOf(error));
    this.log.add(`VIOLATION ${this.violation.message}`);
    this.#stop();
  }

  #arrived(call: TableCall, failure: Failure | undefined): void {
    if (failure !== undefined) this.disturbedAtMs = this.time.nowMs;
    if (failure !== undefined && this.#logs) {
      this.log.add(`p${call.process} ${call.operation}: ${failure.kind}`);
    }
  }

  /** Fails when a client sends an invalid request, such as one token for two transactions. */
  #refused(call: TableCall, error: Error): void {
    this.books.unanswered(call);
    const subject = `${call.operation} of process ${call.process}`;
    this.fail(new Violation("crash", subject, error.message));
  }

  #landed(call: TableCall, landings: readonly Landing[]): void {
    if (this.violation !== undefined) return;
    try {
      const parsed = bucketLandings(call, landings, this.#moments, !this.switches.isEmpty);
      if (this.#logs) {
        for (const landing of parsed) this.log.add(lineOf(call, landing.PK, landing.after));
      }
      this.configs.landed(landings, this.time.nowMs);
      this.operations.landed(landings, parsed);
      this.slotBooks.landed(call, landings, this.time.nowMs);
      if (parsed.length === 0) return;
      for (const { PK, before, after } of parsed) {
        if (after?.shard === 0) this.#newest.set(after.bucket, { PK, image: after });
        else if (after === undefined && before?.shard === 0) this.#newest.delete(before.bucket);
      }
      this.shape.landed(landings, parsed);
      this.books.landed(call, parsed);
      this.#returns.landed(call, parsed);
      this.switches.landed(parsed, call.process, this.time.nowMs);
      this.refusals.landed(parsed, this.time.nowMs);
      this.totals.landed(parsed);
      this.quotas.landed(call, parsed);
      this.ledger.landed(parsed);
    } catch (error) {
      this.fail(error);
    }
  }
}

function lineOf(call: TableCall, PK: string, after: ShardImage | undefined): string {
  const { process, operation, plannedMs } = call;
  const head = `p${process} ${operation} planned ${plannedMs % 100_000_000}`;
  if (after === undefined) return `${head} deleted ${PK}`;
  const limits = after.limits.map(
    ({ name, tokens, consumed }) => `${name} tk ${tokens} tc ${consumed}`,
  );
  return `${head} ${after.id}/${after.count} rf ${after.epochMs % 100_000_000} ${limits.join(", ")}`;
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
