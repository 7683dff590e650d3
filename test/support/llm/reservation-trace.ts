/** A synthetic trace of calls, to compare ways to estimate their output. */

import { RateLimiter } from "@zae-limiter/limiter/index.ts";
import type { CallFacts } from "@zae-limiter/limiter/llm/call.ts";
import { MeteredCall } from "@zae-limiter/limiter/llm/metered-call.ts";
import { Metering } from "@zae-limiter/limiter/llm/metering.ts";
import { checkLlmOptions } from "@zae-limiter/limiter/llm/options.ts";
import type { Reserve } from "@zae-limiter/limiter/llm/output-estimate.ts";
import { seededRandom } from "../seeded-random.ts";

const CALLS = 3000;
const SEED = 18;
const INPUT_TOKENS = 200;
const MAX_TOKENS = 4096;
const OUTPUT_MEDIAN = 300;
/** Log-normal: one call in ten has more than ten times the output of another one in ten. */
const SIGMA = Math.log(10) / (2 * 1.2816);
const TOKENS_PER_SECOND = 30;
const TPM = 20_000;
/** Share of the limit that the calls ask for, on average. */
const DEMAND = 0.9;
const TARGET = { entityId: "team-a", resource: "model" };
const FACTS: CallFacts = {
  call: { api: "chat", model: "model", stream: false, body: {} },
  prompt: ["x".repeat(4 * INPUT_TOKENS)],
  hasOutput: true,
  outputMax: MAX_TOKENS,
  hasHiddenParts: false,
  isBackground: false,
  signal: undefined,
};

interface Ending {
  readonly atMs: number;
  readonly output: number;
  readonly call: MeteredCall;
}

export interface TraceResult {
  /** Share of all calls that were refused. */
  readonly refused: number;
  /** Share of all calls that were refused although their true use would have fit. */
  readonly wasted: number;
  /** The deepest debt, in tokens. */
  readonly debt: number;
}

/** Returns what comes of the same trace with another way to estimate. */
export async function runTrace(reserve: Reserve): Promise<TraceResult> {
  const random = seededRandom(SEED);
  let nowMs = 1_700_000_000_000;
  await using limiter = await RateLimiter.open("memory:", { clock: () => Math.floor(nowMs) });
  await limiter.repository.limits.setSystem([`tpm:${TPM}`]);
  const metering = new Metering(limiter, checkLlmOptions({ entityId: "team-a", reserve }));
  const meanUse = INPUT_TOKENS + OUTPUT_MEDIAN * Math.exp(SIGMA ** 2 / 2);
  const meanGapMs = (meanUse / (TPM * DEMAND)) * 60_000;
  const open: Ending[] = [];
  const available = async () => (await limiter.available(TARGET))["tpm"] ?? 0;
  let [refused, wasted, debt] = [0, 0, 0];
  for (let call = 0; call < CALLS; call += 1) {
    const startMs = nowMs - Math.log(1 - random()) * meanGapMs;
    open.sort((left, right) => left.atMs - right.atMs);
    while (open[0] !== undefined && open[0].atMs <= startMs) {
      const ending = open.shift() as Ending;
      nowMs = ending.atMs;
      ending.call.seeUsage({ input: INPUT_TOKENS, cached: 0, output: ending.output }, true);
      await ending.call.complete();
      debt = Math.max(debt, -(await available()));
    }
    nowMs = startMs;
    const output = outputOf(random);
    const call = await metering.begin(FACTS, TARGET);
    if (call instanceof MeteredCall) {
      open.push({ atMs: nowMs + (output / TOKENS_PER_SECOND) * 1000, output, call });
      continue;
    }
    const unused = open.reduce((sum, each) => sum + each.call.estimate.output - each.output, 0);
    refused += 1;
    if ((await available()) + unused >= INPUT_TOKENS + output) wasted += 1;
  }
  return { refused: refused / CALLS, wasted: wasted / CALLS, debt };
}

function outputOf(random: () => number): number {
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return Math.min(MAX_TOKENS, Math.ceil(OUTPUT_MEDIAN * Math.exp(SIGMA * normal)));
}
