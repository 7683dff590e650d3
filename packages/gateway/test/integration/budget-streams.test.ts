/** Many streams at once against one budget, on every store: how much is spent when it runs out. */

import type { Gateway } from "@zae-limiter/gateway/gateway.ts";
import { createKey } from "@zae-limiter/gateway/keys.ts";
import { type RateLimiter, TOTAL } from "@zae-limiter/limiter/index.ts";
import { sse } from "@zae-limiter/test-support/llm/shapes.ts";
import { Upstream } from "@zae-limiter/test-support/llm/upstream.ts";
import { expect, test } from "vitest";
import { describeEveryStore } from "../billed-stores.ts";
import { startGateway } from "../started-gateway.ts";

const STREAMS = 200;
/** A gateway reads at most 64 bodies of one entity at a time. */
const KEYS = 8;
const MODEL = "gpt-4o";
/** Two micro-dollars for a token of input, ten for one of output. */
const PRICE = { input: "2", output: "10" };
/** One dollar. No test lasts until the next year begins. */
const BUDGET = "usd:$1/year UTC";
const BUDGET_MICRO = 1_000_000;
const INPUT_TOKENS = 10;
/** The bound of the output that each request states. */
const OUTPUT_MAX = 1000;
/** The output that is expected before anything was learned. */
const COLD_START_OUTPUT = 500;

const costOf = (output: number) => 2 * INPUT_TOKENS + 10 * output;

/** Opens when as many callers have come as were announced. */
class Meeting {
  readonly opened: Promise<void>;
  #missing: number;
  #open: () => void = () => {};

  constructor(callers: number) {
    this.#missing = callers;
    this.opened = new Promise((resolve) => {
      this.#open = resolve;
    });
  }

  come(): void {
    this.#missing -= 1;
    if (this.#missing === 0) this.#open();
  }
}

/** A double that bills streams of different lengths. None ends before all calls are decided. */
class Biller {
  readonly meeting = new Meeting(STREAMS);
  /** The cost of each stream. */
  readonly bill: number[] = [];

  answer(upstream: Upstream): void {
    upstream.replyWith(async (_, response) => {
      const output = 600 + ((this.bill.length * 37) % 400);
      this.bill.push(costOf(output));
      const usage = { prompt_tokens: INPUT_TOKENS, completion_tokens: output };
      response.setHeader("content-type", "text/event-stream");
      response.write(sse([{ choices: [{ delta: { content: "x" } }] }]));
      this.meeting.come();
      await this.meeting.opened;
      response.end(sse([{ choices: [], usage }], { done: true }));
    });
  }

  get total(): number {
    return this.bill.reduce((sum, cost) => sum + cost, 0);
  }
}

/** A gateway before a team with a budget, and keys of people below the team. */
class Stage {
  readonly team = `team-${crypto.randomUUID()}`;
  readonly biller = new Biller();
  readonly #keys: string[] = [];

  private constructor(
    readonly limiter: RateLimiter,
    readonly upstream: Upstream,
    readonly gateway: Gateway,
  ) {}

  static async start(limiter: RateLimiter, reserveMoney: "learned" | "max"): Promise<Stage> {
    const upstream = await Upstream.start();
    await limiter.repository.prices.set(MODEL, PRICE);
    const gateway = await startGateway(limiter, upstream, { reserveMoney, timeoutMs: 60_000 });
    const stage = new Stage(limiter, upstream, gateway);
    await stage.#fill();
    stage.biller.answer(upstream);
    return stage;
  }

  async #fill(): Promise<void> {
    const { entities, limits } = this.limiter.repository;
    await entities.create({ id: this.team });
    await limits.setEntity(this.team, [BUDGET], { resource: TOTAL });
    for (let at = 0; at < KEYS; at += 1) {
      const id = `${this.team}-${at}`;
      await entities.create({ id, parentId: this.team, cascade: true });
      this.#keys.push((await createKey(this.limiter.repository, id, undefined)).key);
    }
  }

  /** Asks for all streams at once, and returns the statuses of the answers. */
  async askAll(): Promise<number[]> {
    return Promise.all(Array.from({ length: STREAMS }, (_, at) => this.ask(at)));
  }

  /** Asks for a stream, reads all of it, and returns the status. */
  async ask(at = 0): Promise<number> {
    const body = { model: MODEL, messages: "x".repeat(4 * INPUT_TOKENS), max_tokens: OUTPUT_MAX };
    const reply = await fetch(`${this.gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${this.#keys[at % KEYS]}` },
      body: JSON.stringify({ ...body, stream: true }),
    });
    if (!reply.ok) {
      expect(await reply.json()).toMatchObject({ error: { code: "budget_exceeded" } });
      this.biller.meeting.come();
    } else await reply.text();
    return reply.status;
  }

  /** Returns what the team has spent, in micro-dollars. */
  async spent(): Promise<number> {
    const { usd } = await this.limiter.available({ entityId: this.team, resource: TOTAL });
    return BUDGET_MICRO - (usd ?? Number.NaN);
  }

  async stop(): Promise<void> {
    await this.gateway.stop(Promise.resolve());
    await this.limiter.close();
    await this.upstream.stop();
  }
}

const granted = (statuses: readonly number[]) => statuses.filter((status) => status === 200).length;

describeEveryStore("200 streams at once against a budget", (open) => {
  test("streams that reserve the most never settle above it", async () => {
    const stage = await Stage.start(await open(), "max");
    const statuses = await stage.askAll();
    expect(granted(statuses)).toBe(Math.floor(BUDGET_MICRO / costOf(OUTPUT_MAX)));
    expect(await stage.spent()).toBe(stage.biller.total);
    expect(stage.biller.total).toBeLessThanOrEqual(BUDGET_MICRO);
    await stage.stop();
  });

  test("streams that reserve what is expected settle above it by no more than they overran", async () => {
    const stage = await Stage.start(await open(), "learned");
    const reserved = costOf(COLD_START_OUTPUT);
    const statuses = await stage.askAll();
    expect(granted(statuses)).toBe(Math.floor(BUDGET_MICRO / reserved));
    const spent = await stage.spent();
    expect(spent).toBe(stage.biller.total);
    const overrun = stage.biller.bill.reduce((sum, cost) => sum + cost - reserved, 0);
    expect(spent).toBeGreaterThan(BUDGET_MICRO);
    expect(spent).toBeLessThanOrEqual(BUDGET_MICRO + overrun);
    expect(await stage.ask()).toBe(429);
    await stage.stop();
  });
});
