/** Ways to tokens that are not counted: none of them is left. */

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  AttackedGateway,
  bodyFor,
  CHAT,
  INPUT,
  MESSAGES,
  MODEL,
  RESPONSES,
} from "../attacked-gateway.ts";

let attacked: AttackedGateway;
beforeEach(async () => {
  attacked = await AttackedGateway.start();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await attacked.stop();
});

describe("background responses", () => {
  test("a background response keeps a reserve until a poll brings its usage", async () => {
    const plan = attacked.plan({ text: 100, reasoning: 900 });
    const begun = await attacked.call(RESPONSES, plan, {
      background: true,
      max_output_tokens: 5000,
    });
    expect(begun.status).toBe(200);
    expect(await attacked.consumedAtLast()).toBeGreaterThanOrEqual(attacked.billed(plan));
    const { id } = JSON.parse(begun.text) as { id: string };
    expect((await attacked.send("GET", `${RESPONSES}/${id}`)).status).toBe(200);
    expect(await attacked.consumedAtLast()).toBe(attacked.billed(plan));
    expect((await attacked.send("GET", `${RESPONSES}/${id}`)).status).toBe(200);
    expect(await attacked.consumedAtLast()).toBe(attacked.billed(plan));
  });

  test("a response of another key cannot be read", async () => {
    const plan = attacked.plan({ text: 10 });
    const begun = await attacked.call(RESPONSES, plan, { background: true });
    const { id } = JSON.parse(begun.text) as { id: string };
    const key = await attacked.keyOf("team-b");
    const before = attacked.upstream.arrived.length;
    const polled = await attacked.send("GET", `${RESPONSES}/${id}`, "", { key });
    expect(polled.status).toBe(404);
    expect(attacked.upstream.arrived).toHaveLength(before);
  });
});

describe("names of models", () => {
  test("names that no upstream lists share one bucket", async () => {
    await attacked.limiter.repository.limits.setSystem(["rpm:5", "tpm:100000"]);
    const plan = attacked.plan();
    const statuses: number[] = [];
    for (let at = 0; at < 20; at += 1) {
      const { status } = await attacked.call(CHAT, plan, bodyFor(CHAT, plan, `name-${at}`));
      statuses.push(status);
    }
    expect(statuses.filter((status) => status === 200).length).toBeLessThanOrEqual(5);
    expect(await attacked.consumedAtLast("team-a", "other")).toBe(attacked.billed());
  });

  test.each(["@all", "@other", "@", "a b", "x".repeat(2000)])(
    "a model cannot have the name %j",
    async (model) => {
      const plan = attacked.plan();
      const { status } = await attacked.call(CHAT, plan, { model: model.slice(0, 1500) });
      if (status === 200)
        expect(await attacked.consumedAtLast("team-a", "other")).toBeGreaterThan(0);
      else expect([400, 404]).toContain(status);
    },
  );

  test("the deployment in a path of Azure goes before the model of the body", async () => {
    const plan = attacked.plan();
    const path = `/openai/deployments/${MODEL}/chat/completions`;
    await attacked.call(path, plan, { model: "fresh-1" });
    expect(await attacked.consumedAtLast()).toBe(attacked.billed());
    expect(attacked.billed()).toBeGreaterThan(0);
  });

  test.each([
    ["twice", (body: string) => body.replace("{", '{"model":"claude-test",')],
    ["twice, the other way round", (body: string) => body.replace(/\}$/, ',"model":"gpt-4o"}')],
    ["in other letters", (body: string) => body.replace("{", '{"Model":"claude-test",')],
    ["with an escape", (body: string) => body.replace("{", '{"\\u006dodel":"claude-test",')],
  ])("a body that names its model %s reaches the upstream with one name", async (_, change) => {
    const plan = attacked.plan();
    const body = change(JSON.stringify(bodyFor(CHAT, plan)));
    const { status } = await attacked.send("POST", CHAT, body);
    const posted = attacked.upstream.arrived.filter(({ method }) => method === "POST");
    if (status !== 200) return expect(posted).toHaveLength(0);
    const sent = posted[0]?.body ?? "";
    expect(sent.match(/"model"\s*:/gi)).toHaveLength(1);
    const { model } = JSON.parse(sent) as { model: string };
    expect(await attacked.consumedAtLast("team-a", model)).toBe(attacked.billed());
  });

  test("a body of a GET names no resource", async () => {
    await attacked.send("GET", "/v1/models", '{"model":"gpt-4o"}');
    expect(await attacked.consumed("team-a", MODEL, "rpm")).toBe(0);
  });
});

describe("hanging up", () => {
  test("a plain call whose client leaves costs what the provider bills", async () => {
    const plan = attacked.plan({ text: 300, reasoning: 700, fates: [{ kind: "hold", at: 0 }] });
    await attacked.hangUp(CHAT, plan, { max_tokens: 100_000 });
    attacked.upstream.release(plan);
    expect(await attacked.consumedAtLast()).toBe(attacked.billed(plan));
  });

  test.each([
    ["hidden reasoning", MESSAGES, { thinking: { type: "enabled", budget_tokens: 400 } }],
    ["stored input", RESPONSES, { previous_response_id: "resp_old", max_output_tokens: 400 }],
    ["a stored conversation", RESPONSES, { conversation: "conv_1", max_output_tokens: 400 }],
  ])("a stream with %s that is hung up keeps its estimate", async (_, path, more) => {
    const plan = attacked.plan({ text: 50, fates: [{ kind: "hold", at: 0.3 }] });
    let reserved = 0;
    const held = attacked.upstream.reached(plan).then(async () => {
      reserved = await attacked.consumed();
    });
    await attacked.hangUp(path, plan, { stream: true, ...more });
    await held;
    expect(reserved).toBeGreaterThan(INPUT + 50);
    expect(await attacked.consumedAtLast()).toBeGreaterThanOrEqual(reserved);
  });

  test.each([
    ["dies in the middle", { kind: "reset", at: 0.5, hasWorked: true }],
    ["never comes", { kind: "reset", at: -1, hasWorked: true }],
  ] as const)("a plain answer that %s keeps its estimate", async (_, fate) => {
    const held = attacked.plan({ fates: [{ kind: "hold", at: 0 }] });
    const first = attacked.call(CHAT, held);
    await attacked.upstream.reached(held);
    const reserved = await attacked.consumed();
    attacked.upstream.release(held);
    await first;
    const before = await attacked.consumedAtLast();
    const plan = attacked.plan({ text: 400, fates: [fate] });
    const { status } = await attacked.call(CHAT, plan).catch(() => ({ status: 502 }));
    expect(status).toBe(502);
    expect((await attacked.consumedAtLast()) - before).toBeGreaterThan(INPUT);
    expect(reserved).toBeGreaterThan(INPUT);
  });
});

describe("answers that are hard to read", () => {
  test.each([
    ["CR", "\r"],
    ["CR and LF", "\r\n"],
  ] as const)("streams whose lines end with %s are counted", async (_, lineEnd) => {
    for (const path of [CHAT, MESSAGES, RESPONSES]) {
      const plan = attacked.plan({ text: 40, reasoning: 60, lineEnd });
      expect((await attacked.call(path, plan, { stream: true })).status).toBe(200);
    }
    expect(await attacked.consumedAtLast()).toBe(attacked.billed());
  });

  test("an answer that is compressed unasked costs at least what the provider bills", async () => {
    for (const stream of [false, true]) {
      const plan = attacked.plan({ text: 300, isCompressed: true });
      await attacked.call(CHAT, plan, { stream });
    }
    expect(await attacked.consumedAtLast()).toBeGreaterThanOrEqual(attacked.billed());
  });

  test("usage at the beginning of a stream does not hide what follows", async () => {
    // Anthropic says one output token in its first event.
    const plan = attacked.plan({ text: 100, fates: [{ kind: "reset", at: 0.9, hasWorked: true }] });
    await attacked.call(MESSAGES, plan, { stream: true }).catch(() => {});
    expect(await attacked.consumedAtLast()).toBeGreaterThanOrEqual(attacked.billed() - 3);
  });

  test.each(["negative", "fraction", "absurd", "text", "null", "missing"] as const)(
    "usage that is %s ends the lease with what is known, without a warning",
    async (usage) => {
      const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
      for (const path of [CHAT, MESSAGES, RESPONSES]) {
        for (const stream of [false, true]) {
          const plan = attacked.plan({ text: 200, usage });
          expect((await attacked.call(path, plan, { stream })).status).toBe(200);
        }
      }
      expect(await attacked.consumedAtLast()).toBeGreaterThanOrEqual(attacked.billed());
      expect(warned).not.toHaveBeenCalled();
    },
  );
});

test("large calls of one team do not refuse small ones of another", async () => {
  const { limits } = attacked.limiter.repository;
  await limits.setEntity("team-a", ["rpm:1000", "tpm:10000"], { resource: MODEL });
  const key = await attacked.keyOf("team-b");
  for (let at = 0; at < 30; at += 1) {
    const plan = attacked.plan({ text: 0, reasoning: 20_000 });
    await attacked.call(CHAT, plan, { max_tokens: 30_000 }, key);
  }
  for (let at = 0; at < 5; at += 1) {
    const plan = attacked.plan({ text: 35 });
    expect((await attacked.call(CHAT, plan, { max_tokens: 30_000 })).status).toBe(200);
  }
});

test("a call is sent at most twice, and its loss is not free", async () => {
  const held = Array.from({ length: 30 }, () =>
    attacked.plan({ fates: [{ kind: "hold", at: 0 }] }),
  );
  const first = held.map((plan) => attacked.call(CHAT, plan));
  await Promise.all(held.map((plan) => attacked.upstream.reached(plan)));
  for (const plan of held) attacked.upstream.release(plan);
  await Promise.all(first);
  const before = await attacked.consumedAtLast();
  const lost = attacked.plan({ fates: [{ kind: "reset", at: -1, hasWorked: true }] });
  expect((await attacked.call(CHAT, lost)).status).toBe(502);
  expect(attacked.upstream.arrivalsOf(lost)).toBeLessThanOrEqual(2);
  expect((await attacked.consumedAtLast()) - before).toBeGreaterThan(INPUT);
});
