/** The processes of a run: they come, make calls, crash, and are replaced. */

import type { Random } from "@zae-limiter/limiter/base/random.ts";
import type { RefundWarning } from "@zae-limiter/limiter/buckets/bucket-warning.ts";
import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import type { SimulatedProcess } from "@zae-limiter/testing/table/simulated-process.ts";
import { slotOf } from "../checkers/books.ts";
import { between, pick } from "../draw.ts";
import { CallRun } from "./call-run.ts";
import type { QuotaPeriods } from "./parameters.ts";
import type { Caller, PlannedCall } from "./planned-call.ts";
import { shiftOf } from "./quota-worlds.ts";
import type { World } from "./world.ts";

/** Short, so that a run sees many of them end. */
const TIMEOUT_MS = 800;
const CONFIG_CACHE_SECONDS = 2;
/** After so long every process knows what is stored for levels: cached, and read before that. */
export const KNOWN_MS = CONFIG_CACHE_SECONDS * 1000 + TIMEOUT_MS + 200;
const RESTART_MS = 500;
/** Processes that are cut off lose their slots after this time and six seconds. */
const SLOT_EXPIRY_SECONDS = 2;
/** For so long a process may still be giving back what a call of it had taken. */
const BACKGROUND_MS = 15_000;

interface Worker extends Caller {
  readonly process: SimulatedProcess;
  readonly running: Set<CallRun>;
  /** Calls that have ended, the last ones last. */
  readonly ended: { readonly run: CallRun; readonly atMs: number }[];
}

export class Staff {
  readonly #world: World;
  readonly #random: Random;
  readonly #skewMs: number;
  readonly #quotas: QuotaPeriods | undefined;
  readonly #workers: Worker[] = [];
  crashes = 0;
  calls = 0;
  readonly outcomes = new Map<string, number>();

  constructor(world: World, random: Random, skewMs: number, quotas?: QuotaPeriods) {
    this.#world = world;
    this.#random = random;
    this.#skewMs = skewMs;
    this.#quotas = quotas;
  }

  get size(): number {
    return this.#workers.length;
  }

  get first(): Worker {
    return this.#workers[0] as Worker;
  }

  get underWay(): CallRun[] {
    return this.#workers.flatMap(({ running }) => [...running]);
  }

  get callers(): readonly Caller[] {
    return this.#workers;
  }

  /** Starts another process, as soon as the table accepts it. */
  async hire(): Promise<void> {
    this.#workers.push(await this.#open());
  }

  /** Starts a process that makes no calls and never crashes. */
  operator(): Promise<Caller> {
    return this.#open();
  }

  async #open(): Promise<Worker> {
    const skewMs = this.#skewMs === 0 ? 0 : between(this.#random, -this.#skewMs, this.#skewMs);
    const process = this.#process(skewMs);
    for (;;) {
      try {
        const limiter = await process.open({
          timeoutMs: TIMEOUT_MS,
          configCacheTtlSeconds: CONFIG_CACHE_SECONDS,
          slotExpirySeconds: SLOT_EXPIRY_SECONDS,
          onWarning: (warning) => {
            if (warning.kind === "restore_failed") this.#kept(process.id, warning);
            if (warning.kind === "slots_lost") this.#lost(process.id, warning.holderId);
          },
        });
        const { id, timer } = process;
        const timeoutMs = TIMEOUT_MS;
        return { process, id, limiter, timer, timeoutMs, running: new Set(), ended: [] };
      } catch (error) {
        if (!(error instanceof RateLimiterUnavailable)) throw error;
        await process.timer.sleep(RESTART_MS);
      }
    }
  }

  /** Starts a process; where there are quotas, with data of zones that are its own. */
  #process(skewMs: number): SimulatedProcess {
    const { table } = this.#world;
    const { shiftsMs = [] } = this.#quotas ?? {};
    if (shiftsMs.length <= 1) return table.process({ skewMs });
    // Where the local clock is behind, midnight comes later.
    const process: SimulatedProcess = table.process({
      skewMs,
      localClock: () => () => -shiftOf(shiftsMs, process.id),
    });
    return process;
  }

  /** Starts the call in one of the processes. */
  start(call: PlannedCall): void {
    if (this.#workers.length === 0) return;
    const worker = pick(this.#random, this.#workers);
    const run = new CallRun(this.#world, worker, call);
    this.calls += 1;
    worker.running.add(run);
    this.#world.log.add(
      `p${worker.id} call ${call.number} ${call.deed} of ${call.entityId} starts`,
    );
    void run.run().then(() => {
      worker.running.delete(run);
      worker.ended.push({ run, atMs: this.#world.time.nowMs });
      this.outcomes.set(run.outcome, (this.outcomes.get(run.outcome) ?? 0) + 1);
    });
  }

  /** Crashes a process, whatever it is waiting for; another one takes its place. */
  crash(): void {
    if (this.#workers.length === 0) return;
    const at = Math.floor(this.#random() * this.#workers.length);
    const [worker] = this.#workers.splice(at, 1) as [Worker];
    worker.process.crash();
    this.crashes += 1;
    this.#world.slotGrants.drop(worker.id);
    this.#world.slotBooks.crashed(worker.id);
    this.#world.log.add(`p${worker.id} crashes with ${worker.running.size} calls under way`);
    const sinceMs = this.#world.time.nowMs - BACKGROUND_MS;
    const recent = worker.ended.filter(({ atMs }) => atMs > sinceMs).map(({ run }) => run);
    for (const run of [...worker.running, ...recent]) {
      this.#world.books.claim(worker.id, new Map(), run.most);
    }
    this.#world.time.after(RESTART_MS, () => {
      this.hire().catch((error: unknown) => this.#world.fail(error));
    });
  }

  /** Cuts a process off from the table for some time. */
  cutOff(ms: number): void {
    if (this.#workers.length === 0) return;
    const { process, id } = pick(this.#random, this.#workers);
    this.#world.log.add(`p${id} is cut off for ${Math.round(ms)} ms`);
    process.cutOff();
    this.#world.time.after(ms, () => process.reconnect());
  }

  #lost(process: number, holderId: string): void {
    this.#world.log.add(`p${process} has lost the slots of ${holderId}`);
    this.#world.slotGrants.drop(process);
    this.#world.slotBooks.lost(holderId);
  }

  /** Records a refund that failed: the tokens stay consumed, and a warning was sent. */
  #kept(process: number, { entityId, resource, amountsMilli }: RefundWarning): void {
    const kept = new Map(
      Object.entries(amountsMilli).map(([name, amount]) => [
        slotOf(entityId, resource, name),
        amount,
      ]),
    );
    this.#world.books.claim(process, kept);
  }
}
