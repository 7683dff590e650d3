/** The commands `prices`. */

import { describe, expect, test } from "vitest";
import { temporaryStore } from "../../temporary.ts";

const store = temporaryStore();

describe("prices", () => {
  test("a price is set by parts, listed, exported and removed", async () => {
    const { run, json } = store.namespace();
    expect((await run("prices", "list")).out).toMatch(/no prices of your own.*--shipped/);
    const set = ["prices", "set", "gpt-5", "--input", "1.1", "--cached-input", "0.1"];
    expect(await run(...set, "--output", "9")).toMatchObject({
      code: 0,
      out: "gpt-5 costs $1.1 for input, $0.1 for cached input, $9 for output, a million tokens\n",
    });
    const price = { input: "1.1", cachedInput: "0.1", output: "9" };
    const entry = { model: "gpt-5", upstream: null, price };
    expect(await json("prices", "list")).toEqual({ date: null, prices: [entry] });
    expect((await run("prices", "export")).out).toContain('input: "1.1"');
    expect((await run("prices", "diff")).out).toMatch(/gpt-5 .*input 1.1, 1.25/);
    expect((await run("prices", "delete", "gpt-5")).out).toBe("Removed the price of gpt-5\n");
    expect(await run("prices", "delete", "gpt-5")).toMatchObject({
      code: 1,
      err: "zae-limiter: gpt-5 has no price of its own\n",
    });
  });

  test("a model of one's own is free at its upstream", async () => {
    const { run, json } = store.namespace();
    const set = ["prices", "set", "llama-*", "--free", "--upstream", "127.0.0.1:8000"];
    expect((await run(...set)).out).toBe("llama-* at 127.0.0.1:8000 costs nothing\n");
    expect(await json("prices", "diff")).toMatchObject({
      differences: [{ model: "llama-*", upstream: "127.0.0.1:8000", shipped: null }],
    });
  });

  test("a whole price is given as JSON, and not together with parts", async () => {
    const { run, json } = store.namespace();
    const price = { input: "1.25", output: "10", tiers: { flex: { input: "0.6" } } };
    const set = ["prices", "set", "gpt-5", "--price", JSON.stringify(price)];
    expect(await json(...set)).toEqual({ model: "gpt-5", upstream: null, price });
    expect((await run(...set, "--input", "1")).err).toContain(
      "expected --price or prices of parts",
    );
    const broken = await run("prices", "set", "gpt-5", "--price", "{input:1}");
    expect(broken).toMatchObject({ code: 2 });
    expect(broken.err).toContain("expected JSON such as");
  });

  test("a price that is not a decimal text says what was expected", async () => {
    const { run } = store.namespace();
    const { code, err } = await run("prices", "set", "gpt-5", "--input", "$1");
    expect(code).not.toBe(0);
    expect(err).toContain("expected dollars as text with at most six decimals");
  });

  test("the shipped list says of when it is, and can be searched", async () => {
    const { run, json } = store.namespace();
    const { out } = await run("prices", "list", "--shipped", "--match", "claude-sonnet-4-5");
    expect(out).toMatch(/claude-sonnet-4-5 +anthropic +3 +0\.3 +15/);
    expect(out).toMatch(/as of \d{4}-\d{2}-\d{2}\n$/);
    const found = await json<{ prices: unknown[] }>(
      "prices",
      "list",
      "--shipped",
      "--match",
      "zzz",
    );
    expect(found.prices).toEqual([]);
  });
});
