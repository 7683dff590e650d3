/** Random calls through a gateway, compared with what the double of the provider bills. */

import { Writable } from "node:stream";
import { type AccessEntry, AccessLog } from "@zae-limiter/gateway/access-log.ts";
import { USAGE_WORDS } from "@zae-limiter/test-support/llm/billed-answers.ts";
import type { CallPlan, Fate } from "@zae-limiter/test-support/llm/billing-upstream.ts";
import { seededRandom } from "@zae-limiter/test-support/seeded-random.ts";
import { type AttackedGateway, bodyFor } from "./attacked-gateway.ts";

/** One way in which a call goes; each is an entity of its own. */
interface Kind {
  /** How many of a hundred calls. */
  readonly share: number;
  /**
   * Whether the usage can be known: from the answer, or by counting its text. Otherwise the call is
   * charged what it was estimated at, or the most that it may have.
   */
  readonly isKnown: boolean;
  /** Tokens that a known call may be charged less: those of an event that was cut. */
  readonly tolerance: number;
  draw(draw: Draw): PlannedCall;
}

interface PlannedCall {
  readonly plan: Partial<CallPlan>;
  /** Fields of the body. */
  readonly more?: object;
  readonly path?: string;
  readonly stream?: boolean;
  /** The point at which the client hangs up; `undefined`: it reads the answer to its end. */
  readonly leaves?: "at the hold" | "at a byte";
}

/** Random values of one call. */
class Draw {
  readonly random: () => number;
  constructor(random: () => number) {
    this.random = random;
  }

  number(from: number, to: number): number {
    return from + Math.floor(this.random() * (to - from + 1));
  }

  of<Value>(values: readonly Value[]): Value {
    return values[Math.floor(this.random() * values.length)] as Value;
  }
}

const CHATTY = ["/v1/chat/completions", "/v1/responses", "/v1/messages"] as const;
const ALL = [...CHATTY, "/v1/embeddings"] as const;
const LINE_ENDS = ["\n", "\r", "\r\n"] as const;
const LIES = USAGE_WORDS.filter((word) => word !== "true");
const ANSWER: Fate = { kind: "answer" };
const MODELS: Readonly<Record<string, string>> = {
  "/v1/messages": "claude-test",
  "/v1/embeddings": "text-embedding-3-small",
};
/** Every model that a call names. */
export const BILLED_MODELS = ["gpt-4o", ...Object.values(MODELS)];

const text = (draw: Draw) => ({ text: draw.number(5, 40), lineEnd: draw.of(LINE_ENDS) });
const thinking = (draw: Draw) => ({ ...text(draw), reasoning: draw.number(0, 300) });

const KINDS: Readonly<Record<string, Kind>> = {
  answered: {
    share: 20,
    isKnown: true,
    tolerance: 0,
    draw: (draw) => ({ plan: thinking(draw), path: draw.of(ALL) }),
  },
  "left-plain": {
    share: 14,
    isKnown: true,
    tolerance: 0,
    draw: (draw) => ({
      plan: { ...thinking(draw), fates: [{ kind: "hold", at: 0 }] },
      path: draw.of(ALL),
      stream: false,
      leaves: "at the hold",
    }),
  },
  "left-stream": {
    share: 16,
    isKnown: true,
    tolerance: 1,
    draw: (draw) => ({
      plan: { ...text(draw), fates: [{ kind: "hold", at: draw.random() }] },
      stream: true,
      leaves: "at the hold",
    }),
  },
  // The provider writes on until it sees that its reader is gone.
  "left-racing": {
    share: 6,
    isKnown: true,
    tolerance: 12,
    draw: (draw) => ({ plan: text(draw), leaves: "at a byte" }),
  },
  "cut-stream": {
    share: 6,
    isKnown: true,
    tolerance: 1,
    draw: (draw) => ({
      plan: { ...text(draw), fates: [{ kind: "reset", at: draw.random(), hasWorked: true }] },
      stream: true,
    }),
  },
  lies: {
    share: 10,
    isKnown: true,
    tolerance: 0,
    draw: (draw) => ({ plan: { ...text(draw), usage: draw.of(LIES) }, path: draw.of(ALL) }),
  },
  compressed: {
    share: 3,
    isKnown: true,
    tolerance: 0,
    draw: (draw) => ({ plan: { ...thinking(draw), isCompressed: true } }),
  },
  "refused-first": {
    share: 7,
    isKnown: true,
    tolerance: 0,
    draw: (draw) => {
      const status = draw.of([429, 500, 503]);
      return { plan: { ...thinking(draw), fates: [{ kind: "status", status }, ANSWER] } };
    },
  },
  "refused-always": {
    share: 2,
    isKnown: true,
    tolerance: 0,
    draw: (draw) => ({ plan: { fates: [{ kind: "status", status: draw.of([429, 500, 503]) }] } }),
  },
  "failed-with-usage": {
    share: 2,
    isKnown: true,
    tolerance: 0,
    draw: (draw) => ({
      plan: { ...thinking(draw), fates: [{ kind: "status", status: 500, hasUsage: true }] },
      path: draw.of(CHATTY),
      stream: false,
    }),
  },
  "closed-when-reused": {
    share: 4,
    isKnown: true,
    tolerance: 0,
    draw: (draw) => ({ plan: { ...thinking(draw), fates: [{ kind: "close reused" }, ANSWER] } }),
  },
  odd: {
    share: 2,
    isKnown: true,
    tolerance: 0,
    draw: (draw) => {
      const to = "http://127.0.0.1:1/";
      const fates = [{ kind: "leak" }, { kind: "redirect", to }] as const;
      return { plan: { fates: [draw.of(fates)] } };
    },
  },
  "lost-answer": {
    share: 4,
    isKnown: false,
    tolerance: 0,
    draw: (draw) => {
      const at = draw.random() < 0.5 ? -1 : draw.random();
      const fates: Fate[] = [{ kind: "reset", at, hasWorked: true }];
      return { plan: { ...thinking(draw), fates }, stream: false };
    },
  },
  stalled: {
    share: 1,
    isKnown: false,
    tolerance: 0,
    draw: (draw) => ({
      plan: { ...thinking(draw), fates: [{ kind: "stall", at: draw.random() }] },
    }),
  },
  "hidden-and-left": {
    share: 3,
    isKnown: false,
    tolerance: 0,
    draw: (draw) => ({
      plan: { ...thinking(draw), storedInput: 200, fates: [{ kind: "hold", at: draw.random() }] },
      more: { previous_response_id: "resp_old", reasoning: { effort: "high" } },
      path: "/v1/responses",
      stream: true,
      leaves: "at the hold",
    }),
  },
};

/** The result of the calls of one kind. */
export interface KindReport {
  readonly kind: string;
  readonly isKnown: boolean;
  readonly calls: number;
  /** Tokens on the provider's bill. */
  readonly billed: number;
  /** Tokens that must have been consumed: of the bill, or, where it cannot be known, of prompts. */
  readonly floor: number;
  readonly consumed: number;
}

const PARALLEL = 16;
const ATTEMPTS_MAX = 3;
const RETRIED: ReadonlySet<number> = new Set([429, 500, 502, 503, 504]);

/** Sends `count` calls, and reports by kind when none of them is open any more. */
export async function billedCalls(
  attacked: AttackedGateway,
  count: number,
  seed: number,
): Promise<KindReport[]> {
  const draw = new Draw(seededRandom(seed));
  const kinds = Object.keys(KINDS);
  const keys = new Map<string, string>();
  for (const kind of kinds) keys.set(kind, await attacked.keyOf(kind));
  const calls = kinds.flatMap((kind) => {
    const { share, draw: drawn } = KINDS[kind] as Kind;
    const length = Math.ceil((count * share) / 100);
    return Array.from({ length }, () => ({ kind, call: drawn(draw), at: draw.random() }));
  });
  // Every kind among every other one; those that take long first.
  calls.sort((a, b) => Number(b.kind === "stalled") - Number(a.kind === "stalled") || a.at - b.at);
  const plans = new Map<string, string[]>();
  const next = calls[Symbol.iterator]();
  const work = async () => {
    for (const { kind, call } of next) {
      const plan = attacked.plan(call.plan);
      plans.set(kind, [...(plans.get(kind) ?? []), plan]);
      await send(attacked, call, plan, keys.get(kind) as string, draw);
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, work));
  await attacked.untilIdle();
  const reports: KindReport[] = [];
  for (const kind of kinds) reports.push(await report(attacked, kind, plans.get(kind) ?? []));
  return reports;
}

async function send(
  attacked: AttackedGateway,
  call: PlannedCall,
  plan: string,
  key: string,
  draw: Draw,
): Promise<void> {
  const path = call.path ?? draw.of(CHATTY);
  const isEmbedding = path === "/v1/embeddings";
  const stream = isEmbedding ? undefined : (call.stream ?? draw.random() < 0.6);
  const input = draw.number(10, 60);
  const max = isEmbedding || draw.random() < 0.3 ? {} : maxOutput(path, 2000);
  const named = bodyFor(path, plan, MODELS[path] ?? "gpt-4o", input);
  const more = { ...named, max_tokens: undefined, ...max, stream, ...call.more };
  if (call.leaves === "at the hold") {
    await attacked.hangUp(path, plan, more, key);
    return attacked.upstream.release(plan);
  }
  if (call.leaves === "at a byte") {
    return attacked.hangUpAt(draw.number(0, 5000), path, plan, more, key);
  }
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    const status = await attacked.call(path, plan, more, key).then(
      (answer) => answer.status,
      // An answer that breaks off is not asked for again.
      () => 200,
    );
    const isRefused = RETRIED.has(status) && (call.plan.fates?.[0]?.kind ?? "") === "status";
    if (!isRefused) return;
  }
}

/** Anthropic's clients always say the most output; the name of the field differs. */
function maxOutput(path: string, most: number): object {
  return path === "/v1/responses" ? { max_output_tokens: most } : { max_tokens: most };
}

async function report(
  attacked: AttackedGateway,
  kind: string,
  plans: readonly string[],
): Promise<KindReport> {
  const { isKnown, tolerance } = KINDS[kind] as Kind;
  const named = new Set(plans);
  const bill = attacked.upstream.bill.filter(({ plan }) => named.has(plan));
  const billed = bill.reduce((sum, { input, output }) => sum + input + output, 0);
  const prompts = bill.reduce((sum, { prompt }) => sum + prompt, 0);
  let consumed = 0;
  for (const model of BILLED_MODELS) consumed += await attacked.consumed(kind, model);
  const floor = isKnown ? billed - tolerance * plans.length : prompts;
  return { kind, isKnown, calls: plans.length, billed, floor, consumed };
}

/** Returns the kinds of calls whose usage cannot be known, as far as there were some. */
export function unknownKinds(reports: readonly KindReport[]): string[] {
  return reports.filter(({ isKnown, calls }) => !isKnown && calls > 0).map(({ kind }) => kind);
}

/** Returns how many tokens the metrics say were consumed in the end. */
export async function tokensInMetrics(attacked: AttackedGateway): Promise<number> {
  const { text } = await attacked.send("GET", "/metrics");
  let tokens = 0;
  for (const line of text.split("\n")) {
    if (!line.includes('zae_limiter_limit="tpm"')) continue;
    const value = Number(line.slice(line.lastIndexOf(" ")));
    if (line.startsWith("zae_limiter_tokens_consumed")) tokens += value;
    if (line.startsWith("zae_limiter_tokens_refunded")) tokens -= value;
    if (!line.startsWith("zae_limiter_tokens_adjusted")) continue;
    tokens += line.includes('direction="more"') ? value : -value;
  }
  return tokens;
}

/** Sums the tokens in the access log of a gateway. */
export class LoggedTokens {
  readonly log: AccessLog;
  readonly #byEntity = new Map<string, number>();

  constructor() {
    const lines = new Writable({
      write: (line: Buffer, _, done) => {
        this.#add(JSON.parse(line.toString()) as AccessEntry);
        done();
      },
    });
    this.log = AccessLog.to(lines, { clock: () => 0, tell: () => {} });
  }

  of(entityId: string): number {
    return this.#byEntity.get(entityId) ?? 0;
  }

  #add({ entity_id: entityId = "", input_tokens: input, output_tokens: output }: AccessEntry) {
    const tokens = (input ?? 0) + (output ?? 0);
    this.#byEntity.set(entityId, this.of(entityId) + tokens);
  }
}
