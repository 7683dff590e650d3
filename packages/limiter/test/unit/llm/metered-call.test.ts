/** Each end of a call, and what it costs. The prompt has 10 tokens, the first estimate 500 more. */

import { settleKept } from "@zae-limiter/limiter/acquire/lease/kept-lease.ts";
import type { MeteredCall } from "@zae-limiter/limiter/llm/metered-call.ts";
import { factsOf, MeteredTest } from "@zae-limiter/test-support/llm/metered.ts";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

const usage = { input: 12, cached: 3, output: 20 };

let world: MeteredTest;
beforeEach(async () => {
  world = await MeteredTest.open();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await world.limiter.close();
});

/** Returns what a call with these fields has consumed after its end. */
async function cost(body: object, end: (call: MeteredCall) => unknown, path?: string) {
  const call = await world.begin(factsOf(body, path));
  await end(call);
  return world.tokens();
}

describe("a whole answer", () => {
  test("a whole answer costs the usage that the provider states", async () => {
    const call = await world.begin();
    expect(call.estimate).toEqual({ input: 10, cached: 0, output: 500 });
    expect(call.used).toBeUndefined();
    call.seeText("x".repeat(400));
    call.seeUsage(usage, true);
    await call.complete();
    expect(await world.consumed()).toEqual({ rpm: 1, tpm: 32 });
    expect(call.used).toEqual(usage);
    expect(call.isEstimated).toBe(false);
  });

  test("a whole answer without usage costs its text, and with neither its estimate", async () => {
    const texts = await cost({}, (call) => {
      call.seeText("x".repeat(80));
      return call.complete();
    });
    expect(texts).toBe(30);
    expect(await cost({}, (call) => call.complete())).toBe(30 + 510);
  });

  test("a whole answer that hides reasoning and states no usage keeps its estimate", async () => {
    const hidden = await cost({ reasoning_effort: "high" }, (call) => {
      call.seeText("Hi");
      return call.complete();
    });
    expect(hidden).toBe(510);
  });

  test("usage of zero tokens is no usage", async () => {
    const zeros = { input: 0, cached: 0, output: 0 };
    const shown = await cost({}, (call) => {
      call.seeUsage(zeros, true);
      call.seeText("x".repeat(80));
      return call.complete();
    });
    expect(shown).toBe(30);
    const silent = await cost({}, (call) => {
      call.seeUsage(zeros, true);
      return call.complete();
    });
    expect(silent).toBe(30 + 510);
  });

  test("usage with input and no output is believed where the answer has no text", async () => {
    const filtered = await cost({}, (call) => {
      call.seeUsage({ input: 12, cached: 0, output: 0 }, true);
      return call.complete();
    });
    expect(filtered).toBe(12);
  });

  test("absurd usage costs the estimate, or the text where that has more", async () => {
    const absurd = (text: string) => (call: MeteredCall) => {
      call.seeText(text);
      call.seeUsage({ isAbsurd: true }, true);
      return call.complete();
    };
    expect(await cost({}, absurd("Hi"))).toBe(510);
    expect(await cost({}, absurd("x".repeat(8000)))).toBe(510 + 2010);
  });

  test("running usage of a whole answer is believed unless text follows it", async () => {
    const running = (end: string) => (call: MeteredCall) => {
      call.seeText("x".repeat(80));
      call.seeUsage({ input: 12, cached: 0, output: 3 });
      call.seeText(end);
      return call.complete();
    };
    expect(await cost({}, running(""))).toBe(15);
    expect(await cost({}, running("more"))).toBe(15 + 33);
  });

  test("later usage replaces earlier usage, and zeros never do", async () => {
    const replaced = await cost({}, (call) => {
      call.seeUsage({ input: 30, cached: 100 });
      call.seeUsage({ input: 0, cached: 0, output: 7 }, true);
      return call.complete();
    });
    expect(replaced).toBe(37);
  });
});

describe("a stream that is cut", () => {
  test("a stream that is cut costs its input and what was streamed", async () => {
    const cut = await cost({ stream: true }, (call) => {
      call.seeText("x".repeat(80));
      return call.breakOff();
    });
    expect(cut).toBe(30);
  });

  test("a stream that is cut before it has shown text keeps its estimate", async () => {
    expect(await cost({ stream: true }, (call) => call.breakOff())).toBe(510);
  });

  test("a stream that states a usage of 0 first costs what was streamed", async () => {
    const cut = await cost({ stream: true }, (call) => {
      call.seeUsage({ input: 0, cached: 0, output: 0 });
      call.seeText("x".repeat(80));
      return call.breakOff();
    });
    expect(cut).toBe(30);
  });

  test("running usage and text of a stream that is cut: the larger one counts", async () => {
    const running = (output: number) => (call: MeteredCall) => {
      call.seeUsage({ input: 12, cached: 0, output });
      call.seeText("x".repeat(80));
      return call.breakOff();
    };
    expect(await cost({}, running(3))).toBe(32);
    expect(await cost({}, running(300))).toBe(32 + 312);
  });

  test("a stream that is cut after its last usage costs that usage", async () => {
    const cut = await cost({ model: "gpt-4o", reasoning_effort: "high" }, (call) => {
      call.seeText("x".repeat(80));
      call.seeUsage({ input: 12, cached: 0, output: 3 }, true);
      return call.breakOff();
    });
    expect(cut).toBe(15);
  });

  test.each([
    ["reasoning was asked for", { reasoning_effort: "low" }, undefined],
    ["input is stored elsewhere", { previous_response_id: "r" }, "/v1/responses"],
  ])("a stream that is cut costs the rest of its estimate where %s", async (_, body, path) => {
    const cut = await cost(
      body,
      (call) => {
        call.seeText("x".repeat(80));
        return call.breakOff();
      },
      path,
    );
    expect(cut).toBe(510);
  });

  test("a model that has shown reasoning tokens once hides reasoning from then on", async () => {
    const metering = world.metering({ reserve: 500 });
    const first = await world.begin(factsOf(), metering);
    first.seeUsage({ input: 10, cached: 0, output: 90, outputParts: { reasoning: 64 } }, true);
    await first.complete();
    const second = await world.begin(factsOf(), metering);
    second.seeText("Hi");
    await second.breakOff();
    expect(await world.tokens()).toBe(100 + 510);
  });

  test("a background stream that is cut costs the most, since the provider works on", async () => {
    const body = { background: true, stream: true, max_output_tokens: 9000 };
    const cut = await cost(
      body,
      (call) => {
        call.seeText("Hi");
        return call.breakOff();
      },
      "/v1/responses",
    );
    expect(cut).toBe(9010);
  });
});

describe("a call whose usage cannot be known", () => {
  test("a call whose usage cannot be known costs max_tokens, for each choice", async () => {
    expect(await cost({ max_tokens: 4000, n: 2 }, (call) => call.chargeMost())).toBe(8010);
  });

  test("a call whose usage cannot be known costs the most of its model, else 16,384", async () => {
    const facts = { ...factsOf({ n: 2 }), modelOutputMax: 3000 };
    await (await world.begin(facts)).chargeMost();
    expect(await world.tokens()).toBe(6010);
    await (await world.begin()).chargeMost();
    expect(await world.tokens()).toBe(6010 + 16_394);
  });

  test("a call whose usage cannot be known never costs less than its estimate or its text", async () => {
    const metering = world.metering({ reserve: 700 });
    const facts = { ...factsOf(), modelOutputMax: 100 };
    await (await world.begin(facts, metering)).chargeMost();
    expect(await world.tokens()).toBe(710);
    const long = await world.begin(facts, metering);
    long.seeText("x".repeat(8000));
    await long.chargeMost();
    expect(await world.tokens()).toBe(710 + 2010);
  });

  test("a call whose last usage is known costs that usage", async () => {
    const known = await cost({}, (call) => {
      call.seeUsage(usage, true);
      return call.chargeMost();
    });
    expect(known).toBe(32);
  });

  test("an answer that cannot be read costs the most, whether whole or cut", async () => {
    const unread = (end: "complete" | "breakOff") => (call: MeteredCall) => {
      call.seeUnread();
      return call[end]();
    };
    expect(await cost({ max_tokens: 900 }, unread("complete"))).toBe(910);
    expect(await cost({ max_tokens: 900 }, unread("breakOff"))).toBe(2 * 910);
  });

  test("embeddings that cannot be read cost their input", async () => {
    const body = { input: "x".repeat(40) };
    const embedded = await cost(body, (call) => call.chargeMost(), "/v1/embeddings");
    expect(embedded).toBe(10);
  });

  test("a bound of 10^12 tokens ends the lease", async () => {
    const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    expect(await cost({ max_tokens: 1e12 }, (call) => call.chargeMost())).toBe(1e12);
    expect(warned).not.toHaveBeenCalled();
  });

  test("a held call keeps the most until its usage settles it", async () => {
    const call = await world.begin(factsOf({ background: true }, "/v1/responses"));
    const kept = await call.hold();
    expect(await world.tokens()).toBe(16_394);
    if (kept === undefined) throw new Error("Nothing was kept");
    await settleKept(world.limiter, JSON.parse(JSON.stringify(kept)), { tpm: 91 });
    expect(await world.consumed()).toEqual({ rpm: 1, tpm: 91 });
  });
});

describe("a call that failed", () => {
  test.each([429, 500, 503, 504, 529])("a %i is refunded", async (status) => {
    expect(await cost({}, (call) => call.fail({ status }))).toBe(0);
    expect(await world.consumed()).toEqual({ rpm: 0, tpm: 0 });
  });

  test("another 4xx costs one request and no tokens", async () => {
    await cost({}, (call) => call.fail({ status: 400 }));
    expect(await world.consumed()).toEqual({ rpm: 1, tpm: 0 });
  });

  test.each([429, 500, 400])("a %i that states usage costs that usage", async (status) => {
    await cost({}, (call) => call.fail({ status, usage }));
    expect(await world.consumed()).toEqual({ rpm: 1, tpm: 32 });
  });

  test("an error that states absurd usage or none is as one without", async () => {
    expect(await cost({}, (call) => call.fail({ status: 500, usage: { isAbsurd: true } }))).toBe(0);
    expect(await cost({}, (call) => call.fail({ status: 500, usage: {} }))).toBe(0);
  });

  const failure = (fields: object, cause?: unknown) =>
    Object.assign(new Error("failed", { cause }), fields);
  test.each([
    ["a refused connection", failure({ code: "ECONNREFUSED", syscall: "connect" })],
    ["an unknown host", failure({ code: "ENOTFOUND", syscall: "getaddrinfo" })],
    ["a connection that took too long", failure({}, failure({ code: "UND_ERR_CONNECT_TIMEOUT" }))],
    ["a wrong certificate", failure({}, failure({ code: "CERT_HAS_EXPIRED" }))],
    ["several addresses", failure({}, new AggregateError([failure({ syscall: "connect" })]))],
  ])("%s proves that nothing was sent, and is refunded", async (_, error) => {
    await cost({}, (call) => call.fail({ error }));
    expect(await world.consumed()).toEqual({ rpm: 0, tpm: 0 });
  });

  const circle = failure({ code: "X" });
  circle.cause = circle;
  test.each([
    ["a reset connection", failure({ code: "ECONNRESET", syscall: "read" })],
    ["an answer that did not come", failure({}, failure({ code: "UND_ERR_HEADERS_TIMEOUT" }))],
    ["a circle of causes", circle],
    ["something that is no error", "lost"],
  ])("%s keeps the estimate", async (_, error) => {
    await cost({}, (call) => call.fail({ error }));
    expect(await world.consumed()).toEqual({ rpm: 1, tpm: 510 });
  });

  test("refundWhen decides in their place, and its own error keeps the estimate", async () => {
    const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    const failed = async (refundWhen: () => boolean, status?: number) => {
      const call = await world.begin(factsOf(), world.metering({ refundWhen }));
      await call.fail(status === undefined ? { error: "lost" } : { status });
      return world.tokens();
    };
    expect(await failed(() => true, 400)).toBe(0);
    expect(await failed(() => true)).toBe(0);
    expect(await failed(() => false, 404)).toBe(0);
    expect(await failed(() => false, 504)).toBe(510);
    const broken = () => {
      throw new Error("a bug");
    };
    expect(await failed(broken)).toBe(1020);
    expect(warned).toHaveBeenCalledTimes(1);
  });
});

describe("the end of a lease", () => {
  test("only the first end of a call counts", async () => {
    const call = await world.begin();
    await call.refund();
    await Promise.all([call.chargeMost(), call.complete(), call.fail({ status: 400 })]);
    await call.breakOff();
    await call.keepEstimate();
    expect(await world.consumed()).toEqual({ rpm: 0, tpm: 0 });
    expect(call.used).toEqual({ input: 0, cached: 0, output: 0 });
  });

  test("an end that cannot be written is a warning and no error", async () => {
    const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    const call = await world.begin();
    call.seeUsage({ ...usage, output: 9000 }, true);
    await world.limiter.close();
    await call.complete();
    expect(warned).toHaveBeenCalledWith(
      "Could not write the usage of a for gpt-4o. Its estimate stays.",
      expect.objectContaining({ code: "ZAEL_LLM_COMMIT_FAILED" }),
    );
    world = await MeteredTest.open();
  });

  test("the estimate that is kept is the first one, also after a stream was corrected", async () => {
    const call = await world.begin(factsOf(), world.metering({ flushEvery: 100 }));
    call.startStreaming();
    call.seeText("x".repeat(8000));
    await call.keepEstimate();
    expect(await world.tokens()).toBe(510);
  });
});
