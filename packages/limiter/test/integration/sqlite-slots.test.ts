/** Slots in a file that processes share, and the example of concurrency. */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { builtSources } from "@zae-limiter/test-support/build.ts";
import { temporaryFolder } from "@zae-limiter/test-support/temporary-folder.ts";
import { describe, expect, it } from "vitest";
import { seatTests } from "./slots/seats.ts";
import { Child } from "./sqlite/child.ts";

/** Several processes that start, on a machine that has much else to do. */
const LONG = { timeout: 600_000 };

const build = builtSources();
const folder = temporaryFolder();
let files = 0;

describe("twenty slots of eight processes", () => {
  const address = () => {
    files += 1;
    return `sqlite:${join(folder, `limits-${files}.db`)}`;
  };
  // `npm run soak:slots` makes ten thousand calls, with two seconds. Here other tests need the
  // cores, too: a process that gets none for most of the expiry loses its slots, as it should.
  seatTests(address, { calls: 1000, disturbedCalls: 1000, expirySeconds: 6 });
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
