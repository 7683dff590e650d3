/** A synthetic trace of calls, to compare ways to estimate their output. */

import { RateLimiter } from "@zae-limiter/limiter/index.ts";
import { OutputEstimate, type Reserve } from "@zae-limiter/limiter/llm/output-estimate.ts";
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

interface Ending {
  readonly atMs: number;
  readonly output: number;
  readonly reserved: number;
  readonly settle: () => Promise<void>;
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
  const outputs = new OutputEstimate(reserve);
  let nowMs = 1_700_000_000_000;
  await using limiter = await RateLimiter.open("memory:", { clock: () => Math.floor(nowMs) });
  await limiter.repository.limits.setSystem([`tpm:${TPM}`]);
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
      await ending.settle();
      outputs.learn(TARGET, ending.output);
      debt = Math.max(debt, -(await available()));
    }
    nowMs = startMs;
    const output = outputOf(random);
    const reserved = outputs.of(TARGET, MAX_TOKENS);
    const consume = { tpm: INPUT_TOKENS + reserved };
    const decision = await limiter.tryAcquire({ ...TARGET, consume });
    if (!decision.granted) {
      const unused = open.reduce((sum, each) => sum + each.reserved - each.output, 0);
      refused += 1;
      if ((await available()) + unused >= INPUT_TOKENS + output) wasted += 1;
      continue;
    }
    const { lease } = decision;
    const settle = () => {
      lease.settle({ tpm: INPUT_TOKENS + output });
      return lease.commit();
    };
    open.push({ atMs: nowMs + (output / TOKENS_PER_SECOND) * 1000, output, reserved, settle });
  }
  return { refused: refused / CALLS, wasted: wasted / CALLS, debt };
}

function outputOf(random: () => number): number {
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return Math.min(MAX_TOKENS, Math.ceil(OUTPUT_MEDIAN * Math.exp(SIGMA * normal)));
}
