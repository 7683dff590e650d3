/**
 * Slots of eight processes, which are killed and stopped while they hold some. There are as many
 * seats as slots, and each grant takes one: where more are held than there are, one finds no seat.
 */

import { mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync, unlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RateLimiter } from "@zae-limiter/limiter/index.ts";
import { builtSources } from "@zae-limiter/test-support/build.ts";
import { expect, it } from "vitest";
import { Child } from "../sqlite/child.ts";

const HOLD = new URL("./hold.mjs", import.meta.url);
const SLOTS = 20;
const PROCESSES = 8;
const AT_ONCE = 4;
/** Calls after which a process stops itself, while its other calls hold slots. */
const STOP_AT = 40;
/** Several processes that start, on a machine that has much else to do. */
const LONG = { timeout: 1_200_000 };
const CALL = { entityId: "hot", resource: "api" };

interface Report {
  readonly granted: number;
  readonly refused: number;
  readonly seatless: number;
  readonly lost: number;
}

export interface Effort {
  /** Calls of the processes together, while none of them is disturbed. */
  readonly calls: number;
  /** Calls while some are killed and stopped; absent: those tests are left out. */
  readonly disturbedCalls?: number;
  readonly expirySeconds: number;
}

/** One store with a folder of seats. */
class Seats {
  readonly limiter: RateLimiter;
  readonly #url: string;
  readonly #folder: string;
  readonly #effort: Effort;

  private constructor(limiter: RateLimiter, url: string, folder: string, effort: Effort) {
    this.limiter = limiter;
    this.#url = url;
    this.#folder = folder;
    this.#effort = effort;
  }

  static async open(url: string, effort: Effort): Promise<Seats> {
    const { expirySeconds: slotExpirySeconds } = effort;
    const limiter = await RateLimiter.open(url, { timeoutMs: 60_000, slotExpirySeconds });
    const limits = [`parallel:${SLOTS} concurrent`, "calls:1000000/day UTC"];
    await limiter.repository.limits.setSystem(limits);
    const folder = mkdtempSync(join(tmpdir(), "zae-limiter-seats-"));
    mkdirSync(join(folder, "seats"));
    return new Seats(limiter, url, folder, effort);
  }

  async close(): Promise<void> {
    await this.limiter.close();
    rmSync(this.#folder, { recursive: true });
  }

  /** Starts processes that make this many calls together. */
  async start(calls: number, stopAt = 0): Promise<Child[]> {
    const { index } = builtSources();
    const { expirySeconds } = this.#effort;
    const each = [calls / PROCESSES, AT_ONCE, expirySeconds].map(String);
    const children = Array.from({ length: PROCESSES }, (_, at) => {
      const args = [index, this.#url, this.#seats, String(SLOTS), `p${at}`, ...each];
      return new Child(HOLD, at === 0 ? [...args, String(stopAt)] : args);
    });
    for (const child of children) await child.answer();
    for (const child of children) child.go();
    return children;
  }

  /** Removes the seats of a process that cannot use its slots any more. */
  clear(id: string): void {
    for (const name of readdirSync(this.#seats)) {
      const seat = join(this.#seats, name);
      try {
        if (readlinkSync(seat) === id) unlinkSync(seat);
      } catch {
        // Its owner has left it meanwhile.
      }
    }
  }

  /** Whether all slots can be held at once: then none was lost, and none was made. */
  async areAllFree(): Promise<boolean> {
    const all = { ...CALL, consume: { parallel: SLOTS } };
    const decision = await this.limiter.tryAcquire(all);
    if (!decision.granted) return false;
    const more = await this.limiter.tryAcquire({ ...CALL, consume: { parallel: 1 } });
    await decision.lease.commit();
    expect(more.granted).toBe(false);
    return true;
  }

  /** Waits until the slots of dead processes have come back. */
  async untilAllAreFree(): Promise<void> {
    const timeout = 60_000 + 2000 * this.#effort.expirySeconds;
    await expect.poll(() => this.areAllFree(), { timeout, interval: 200 }).toBe(true);
  }

  get #seats(): string {
    return join(this.#folder, "seats");
  }
}

/** Waits until a process has been granted a number of calls. */
async function granted(child: Child, calls: number): Promise<void> {
  for (;;) {
    const said = await child.answer();
    if (typeof said !== "number" || said >= calls) return;
  }
}

async function reportOf(child: Child): Promise<Report> {
  for (;;) {
    const said = await child.answer();
    if (typeof said === "object") return said as Report;
  }
}

/** Returns how many calls found no seat, and how many slots were lost. */
function wrong(reports: readonly Report[]): Pick<Report, "seatless" | "lost"> {
  const sum = (name: "seatless" | "lost") =>
    reports.reduce((total, report) => total + report[name], 0);
  return { seatless: sum("seatless"), lost: sum("lost") };
}

const NOTHING_WRONG = { seatless: 0, lost: 0 };

/** `addressOf` returns the address of a place that no other test uses. */
export function seatTests(addressOf: () => string | Promise<string>, effort: Effort): void {
  const { calls, disturbedCalls } = effort;

  async function seated(work: (seats: Seats) => Promise<void>): Promise<void> {
    const seats = await Seats.open(await addressOf(), effort);
    try {
      await work(seats);
    } finally {
      await seats.close();
    }
  }

  it(
    `eight processes hold at most ${SLOTS} slots, and all are free after ${calls} calls`,
    LONG,
    () =>
      seated(async (seats) => {
        const children = await seats.start(calls);
        const reports = await Promise.all(children.map(reportOf));
        expect(reports.reduce((sum, report) => sum + report.granted, 0)).toBe(calls);
        expect(wrong(reports)).toEqual(NOTHING_WRONG);
        const left = { parallel: SLOTS, calls: 1_000_000 - calls };
        expect(await seats.limiter.available(CALL)).toMatchObject(left);
        expect(await seats.areAllFree()).toBe(true);
      }),
  );

  if (disturbedCalls === undefined) return;

  it("the slots of killed processes come back, and only theirs", LONG, () =>
    seated(async (seats) => {
      const children = await seats.start(disturbedCalls);
      const killed = children.slice(0, 3);
      await Promise.all(
        killed.map(async (child, at) => {
          await granted(child, 20 * (at + 1));
          await child.kill();
          seats.clear(`p${at}`);
        }),
      );
      const reports = await Promise.all(children.slice(3).map(reportOf));
      expect(wrong(reports)).toEqual(NOTHING_WRONG);
      await seats.untilAllAreFree();
    }),
  );

  it("a process that is stopped for longer loses its slots, and frees no others", LONG, () =>
    seated(async (seats) => {
      const children = await seats.start(disturbedCalls, STOP_AT);
      const [stopped, ...others] = children as [Child, ...Child[]];
      await granted(stopped, STOP_AT);
      seats.clear("p0");
      // The others go on with the slots of the stopped process once its record is over.
      const reports = await Promise.all(others.map(reportOf));
      await seats.untilAllAreFree();
      stopped.goOn();
      const late = await reportOf(stopped);
      expect(wrong(reports)).toEqual(NOTHING_WRONG);
      expect(late.seatless).toBe(0);
      await seats.untilAllAreFree();
    }),
  );
}
