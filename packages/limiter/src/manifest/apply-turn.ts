/**
 * A lock for the applies of one namespace. An apply holds it in the record of managed places for a
 * limited time, which it extends as it goes; the lock of a dead apply expires. Every write to the
 * record requires that it has not changed since, so an apply that lost the lock notices and stops.
 */

import { randomBytes } from "../base/random.ts";
import type { Timer } from "../base/time.ts";
import { InfrastructureError } from "../domain/errors/errors.ts";
import type { RecordContext } from "../records/record-context.ts";
import {
  type ManagedContent,
  type ManagedRecord,
  readManaged,
  writeManaged,
} from "./managed-record.ts";

const TURN_MS = 30_000;
const POLL_MS = 250;
const ID_BYTES = 8;

/** How an apply waits for others. */
interface TurnOptions {
  readonly timer: Timer;
  /** How long to wait for an apply that is already at work. */
  readonly waitMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** The lock, the record as it was before, and what `prepare` made of the record. */
interface Taken<Prepared> {
  readonly record: ManagedRecord;
  readonly prepared: Prepared;
  /** Absent when there was nothing to begin. */
  readonly turn: ApplyTurn | undefined;
}

/** The right to change what is managed, until `end`. */
export class ApplyTurn {
  readonly #context: RecordContext;
  #record: ManagedRecord;

  private constructor(context: RecordContext, record: ManagedRecord) {
    this.#context = context;
    this.#record = record;
  }

  /**
   * Waits until no apply holds the lock, then calls `prepare`. If the record changes meanwhile,
   * calls it again; if there is nothing to begin, writes nothing.
   */
  static async take<Prepared extends { readonly begin?: ManagedContent }>(
    context: RecordContext,
    options: TurnOptions,
    prepare: (record: ManagedRecord) => Promise<Prepared>,
  ): Promise<Taken<Prepared>> {
    const id = Buffer.from(randomBytes(context.random, ID_BYTES)).toString("hex");
    for (;;) {
      const record = await freeRecord(context, options);
      const prepared = await prepare(record);
      if (prepared.begin === undefined) return { record, prepared, turn: undefined };
      const run = { id, untilMs: context.clock() + TURN_MS };
      const written = await writeManaged(context, record, { ...prepared.begin, run });
      if (written === undefined) continue;
      return { record, prepared, turn: new ApplyTurn(context, written) };
    }
  }

  /** Asks for more time when half of it is gone. */
  async extend(): Promise<void> {
    const { run } = this.#record;
    const nowMs = this.#context.clock();
    if (run === undefined || run.untilMs - nowMs > TURN_MS / 2) return;
    await this.#write({ ...this.#record, run: { ...run, untilMs: nowMs + TURN_MS } });
  }

  /** Records the outcome and releases the lock. */
  async end(content: Omit<ManagedContent, "run">): Promise<void> {
    await this.#write(content);
  }

  async #write(content: ManagedContent): Promise<void> {
    const written = await writeManaged(this.#context, this.#record, content);
    if (written === undefined) {
      throw new InfrastructureError(
        "Another apply has taken over, because this one made no progress for too long. " +
          "Its finished changes stay; apply again for the rest",
      );
    }
    this.#record = written;
  }
}

async function freeRecord(context: RecordContext, options: TurnOptions): Promise<ManagedRecord> {
  const { timer, waitMs, signal } = options;
  const startedMs = timer.nowMs();
  for (;;) {
    const record = await readManaged(context);
    if (record.run === undefined || record.run.untilMs <= context.clock()) return record;
    if (timer.nowMs() - startedMs >= waitMs || signal?.aborted === true) {
      throw new InfrastructureError(
        "Another apply runs in this namespace. Wait until it ends; " +
          `if it died, its claim expires within ${TURN_MS / 1000} seconds`,
      );
    }
    await timer.sleep(POLL_MS, signal);
  }
}
