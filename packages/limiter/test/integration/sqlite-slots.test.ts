/** Slots in a file that processes share, which are killed and stopped while they hold some. */

import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { RateLimiter } from "@zae-limiter/limiter/index.ts";
import { builtSources } from "@zae-limiter/test-support/build.ts";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Child } from "./sqlite/child.ts";

const HOLD = new URL("./sqlite/hold.mjs", import.meta.url);
const SLOTS = 20;
const PROCESSES = 8;
const AT_ONCE = 4;
/** Calls after which a process stops itself, while its other calls hold slots. */
const STOP_AT = 40;
/** Several processes that start, on a machine that has much else to do. */
const LONG = { timeout: 600_000 };
const POLL = { timeout: 60_000 };
const CALL = { entityId: "hot", resource: "api" };

interface Report {
  readonly granted: number;
  readonly refused: number;
  readonly seatless: number;
  readonly lost: number;
}

const build = builtSources();
let folder: string;
let seats: string;
let url: string;
let limiter: RateLimiter;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "zae-limiter-slots-"));
  seats = join(folder, "seats");
  mkdirSync(seats);
  url = `sqlite:${join(folder, "limits.db")}`;
  limiter = await RateLimiter.open(url, { timeoutMs: 60_000, slotExpirySeconds: 2 });
  const limits = [`parallel:${SLOTS} concurrent`, "calls:1000000/day UTC"];
  await limiter.repository.limits.setSystem(limits);
});

afterEach(async () => {
  await limiter.close();
  rmSync(folder, { recursive: true });
});

/** Starts processes that make this many calls together. */
function holders(calls: number, stopAt = 0): Child[] {
  return Array.from({ length: PROCESSES }, (_, at) => {
    const each = String(calls / PROCESSES);
    const args = [build.index, url, seats, String(SLOTS), `p${at}`, each, String(AT_ONCE)];
    return new Child(HOLD, at === 0 ? [...args, String(stopAt)] : args);
  });
}

async function start(children: readonly Child[]): Promise<void> {
  for (const child of children) await child.answer();
  for (const child of children) child.go();
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

/** Removes the seats of a process that cannot use its slots any more. */
function clear(id: string): void {
  for (const seat of readdirSync(seats)) {
    try {
      if (readlinkSync(join(seats, seat)) === id) unlinkSync(join(seats, seat));
    } catch {
      // Its owner has left it meanwhile.
    }
  }
}

/** Whether all slots can be held at once: then none was lost, and none was made. */
async function areAllFree(): Promise<boolean> {
  const all = { ...CALL, consume: { parallel: SLOTS } };
  const decision = await limiter.tryAcquire(all);
  if (!decision.granted) return false;
  const more = await limiter.tryAcquire({ ...CALL, consume: { parallel: 1 } });
  await decision.lease.commit();
  expect(more.granted).toBe(false);
  return true;
}

describe("twenty slots of eight processes", () => {
  it(
    "the slots that are held are never more than there are, and all are free afterwards",
    LONG,
    async () => {
      const children = holders(10_000);
      await start(children);
      const reports = await Promise.all(children.map(reportOf));
      expect(reports.reduce((sum, report) => sum + report.granted, 0)).toBe(10_000);
      expect(reports.map(({ seatless }) => seatless)).toEqual(children.map(() => 0));
      expect(await limiter.available(CALL)).toMatchObject({ parallel: SLOTS, calls: 990_000 });
      expect(await areAllFree()).toBe(true);
    },
  );

  it("the slots of killed processes come back, and only theirs", LONG, async () => {
    const children = holders(4000);
    await start(children);
    const killed = children.slice(0, 3);
    await Promise.all(
      killed.map(async (child, at) => {
        await granted(child, 40 * (at + 1));
        await child.kill();
        clear(`p${at}`);
      }),
    );
    const reports = await Promise.all(children.slice(3).map(reportOf));
    expect(reports.map(({ seatless, lost }) => seatless + lost)).toEqual([0, 0, 0, 0, 0]);
    await expect.poll(areAllFree, POLL).toBe(true);
  });

  it(
    "a process that is stopped for longer loses its slots, and frees no others",
    LONG,
    async () => {
      const children = holders(4000, STOP_AT);
      await start(children);
      const [stopped, ...others] = children as [Child, ...Child[]];
      await granted(stopped, STOP_AT);
      clear("p0");
      // The others go on with the slots of the stopped process once its record is over.
      const reports = await Promise.all(others.map(reportOf));
      await expect.poll(areAllFree, POLL).toBe(true);
      stopped.goOn();
      const late = await reportOf(stopped);
      expect(reports.map(({ seatless, lost }) => seatless + lost)).toEqual(others.map(() => 0));
      expect(late.seatless).toBe(0);
      await expect.poll(areAllFree, POLL).toBe(true);
    },
  );
});

describe("the example of concurrency", () => {
  it("three processes do sixty renderings, at most ten of them at once", LONG, async () => {
    const example = new URL("../../../../examples/concurrency/index.js", import.meta.url);
    const source = readFileSync(example, "utf8").replace(
      '"zae-limiter"',
      JSON.stringify(build.index),
    );
    const script = join(folder, "example.mjs");
    writeFileSync(script, source);
    const child = new Child(pathToFileURL(script), []);
    const { value } = await child.lines.next();
    await child.ended();
    const [, renderings, most] = /^(\d+) renderings, at most (\d+) at once$/.exec(value) ?? [];
    expect(Number(renderings)).toBe(60);
    expect(Number(most)).toBeLessThanOrEqual(10);
    expect(Number(most)).toBeGreaterThan(0);
  });
});
