/**
 * Many streams at once, with hang-ups, failures and retries: what is consumed is what the upstream
 * says it generated, to the token.
 */

import { hashOf } from "@zae-limiter/gateway/keys.ts";
import { RateLimiter } from "@zae-limiter/limiter/index.ts";
import { limitFetch } from "@zae-limiter/limiter/llm/index.ts";
import { casesOf } from "@zae-limiter/test-support/effort.ts";
import { chatEvents, sse } from "@zae-limiter/test-support/llm/shapes.ts";
import { type Arrived, type Reply, Upstream } from "@zae-limiter/test-support/llm/upstream.ts";
import { seededRandom } from "@zae-limiter/test-support/seeded-random.ts";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startGateway, upstreamAt } from "../started-gateway.ts";

const CALLS = casesOf(500);
const SEED = 20_260_816;
const MODEL = "gpt-4o";
/** 40 bytes: the estimate is exact, so that calls without usage can be compared as well. */
const INPUT_TOKENS = 10;
const OUTPUT_ESTIMATE = 20;
const messages = [{ role: "user" as const, content: "x".repeat(4 * INPUT_TOKENS) }];

type Fate = "usage" | "no usage" | "hang-up" | "break-off" | "503 first" | "503 always";
const FATES: readonly Fate[] = [
  "usage",
  "usage",
  "no usage",
  "hang-up",
  "hang-up",
  "break-off",
  "503 first",
  "503 always",
];

interface Plan {
  readonly fate: Fate;
  readonly tokens: number;
}

let upstream: Upstream;
beforeAll(async () => {
  upstream = await Upstream.start();
});
afterAll(() => upstream.stop());

/** A double that says what it generated: one token is a chunk of four bytes. */
class Generator {
  generated = 0;
  answered = 0;
  /** Tokens that calls used beyond their estimates. */
  debt = 0;
  readonly #plans: readonly Plan[];
  readonly #failed = new Set<string>();

  constructor(plans: readonly Plan[]) {
    this.#plans = plans;
  }

  readonly reply: Reply = (request, response) => {
    const { number, fate, tokens } = this.#planOf(request);
    if (fate === "503 always" || (fate === "503 first" && !this.#failed.has(number))) {
      this.#failed.add(number);
      response.writeHead(503, { "content-type": "application/json", "retry-after-ms": "1" });
      response.end('{"error":{"message":"busy"}}');
      return;
    }
    this.answered += 1;
    this.generated += tokens;
    this.debt += Math.max(0, tokens - OUTPUT_ESTIMATE);
    const all = chatEvents(
      Array.from({ length: tokens }, () => "abcd"),
      "none",
    );
    const usage = {
      prompt_tokens: INPUT_TOKENS,
      completion_tokens: tokens,
      total_tokens: INPUT_TOKENS + tokens,
    };
    response.writeHead(200, { "content-type": "text/event-stream" });
    if (fate === "hang-up") response.write(sse(all.slice(0, -1)));
    else if (fate === "break-off") {
      response.write(sse(all.slice(0, -1)), () => response.destroy());
    } else {
      const last = fate === "no usage" ? [] : [{ ...all[0], choices: [], usage }];
      response.end(sse([...all, ...last], { done: true }));
    }
  };

  #planOf({ headers }: Arrived): Plan & { number: string } {
    const number = String(headers["x-call"]);
    return { number, ...(this.#plans[Number(number)] as Plan) };
  }
}

/** Runs one call as its plan says; `false` when the limiter refused it. */
async function run(openai: OpenAI, number: number, { fate, tokens }: Plan): Promise<boolean> {
  try {
    const headers = { "x-call": String(number) };
    const body = { model: MODEL, messages, stream: true } as const;
    const parts = await openai.chat.completions.create(body, { headers });
    let seen = 0;
    for await (const part of parts) {
      seen += (part.choices[0]?.delta.content ?? "").length / 4;
      if (fate === "hang-up" && seen === tokens) break;
    }
    expect(seen).toBe(tokens);
  } catch (error) {
    if (error instanceof OpenAI.RateLimitError) return false;
    const isExpected = fate === "break-off" || fate === "503 always";
    if (!isExpected) throw error;
  }
  return true;
}

function plansOf(): Plan[] {
  const random = seededRandom(SEED);
  return Array.from({ length: CALLS }, () => ({
    fate: FATES[Math.floor(random() * FATES.length)] as Fate,
    tokens: 1 + Math.floor(random() * 60),
  }));
}

/** More tokens than all calls can use. */
const AMPLE = 1_000_000;

describe("many streams", () => {
  for (const [name, capacity] of [
    [`${CALLS} streams at once that all fit`, AMPLE],
    [`${CALLS} streams at once, some of them refused,`, 20 * CALLS],
  ] as const) {
    test(`${name} consume what the upstream generated, to the token`, async () => {
      const plans = plansOf();
      const generator = new Generator(plans);
      upstream.replyWith(generator.reply);
      await using limiter = await RateLimiter.open("memory:", { clock: () => 1_700_000_000_000 });
      await limiter.repository.limits.setSystem([`rpm:${CALLS}`, `tpm:${capacity}`]);
      const options = { entityId: "team-a", reserve: OUTPUT_ESTIMATE };
      const baseURL = `${upstream.url}/v1`;
      const openai = new OpenAI({
        apiKey: "k",
        baseURL,
        maxRetries: 1,
        fetch: refusingRetries(limitFetch(limiter, options)),
      });
      const granted = await Promise.all(plans.map((plan, number) => run(openai, number, plan)));
      const hangUps = plans.filter(({ fate }, at) => fate === "hang-up" && granted[at]).length;
      const breakOffs = plans.filter(({ fate }, at) => fate === "break-off" && granted[at]).length;
      await upstream.untilHungUp(hangUps + breakOffs);
      const used = generator.generated + INPUT_TOKENS * generator.answered;
      const [rpm, tpm] = await limiter.status({ entityId: "team-a", resource: MODEL });
      expect(capacity - (tpm?.available ?? 0), `seed ${SEED}`).toBe(used);
      expect(CALLS - (rpm?.available ?? 0)).toBe(generator.answered);
      expect(used).toBeLessThanOrEqual(capacity + generator.debt);
      const refused = granted.filter((each) => !each).length;
      // Estimates of calls that run refuse others, also where less was used in the end.
      if (capacity === AMPLE) expect(refused).toBe(0);
      else expect(refused).toBeGreaterThan(0);
    });
  }

  test(`${CALLS} streams at once through a gateway consume what the upstream generated, to the token`, async () => {
    const plans = plansOf();
    const generator = new Generator(plans);
    upstream.replyWith(generator.reply);
    await using limiter = await RateLimiter.open("memory:", { clock: () => 1_700_000_000_000 });
    await limiter.repository.limits.setSystem([`rpm:${CALLS}`, "tpm:1000000"]);
    const upstreams = [upstreamAt(upstream, { models: [MODEL] }, true)];
    const gateway = await startGateway(limiter, upstream, { isOpen: true, upstreams });
    const openai = new OpenAI({ apiKey: "k", baseURL: `${gateway.url}/v1`, maxRetries: 1 });
    const granted = await Promise.all(plans.map((plan, number) => run(openai, number, plan)));
    expect(granted).not.toContain(false);
    const isEarly = ({ fate }: Plan) => fate === "hang-up" || fate === "break-off";
    await upstream.untilHungUp(plans.filter(isEarly).length);
    // Leases end with their answers, and those of hang-ups when the gateway notices.
    await gateway.stop(new Promise(() => {}));
    const entityId = `sha256:${hashOf("k")}`;
    const [rpm, tpm] = await limiter.status({ entityId, resource: MODEL });
    const used = generator.generated + INPUT_TOKENS * generator.answered;
    expect(1_000_000 - (tpm?.available ?? 0), `seed ${SEED}`).toBe(used);
    expect(CALLS - (rpm?.available ?? 0)).toBe(generator.answered);
  });
});

/** Ends refusals at once: with a clock that does not advance, a retry would wait for nothing. */
function refusingRetries(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  return async (...call) => {
    const response = await fetch(...call);
    if (response.status !== 429) return response;
    const headers = new Headers(response.headers);
    headers.set("x-should-retry", "false");
    return new Response(response.body, { status: 429, headers });
  };
}
