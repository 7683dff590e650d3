/** The second act: calls that cost something, what they give back, and a refusal. */

import type { LimitStatus } from "../../domain/limit-status.ts";
import { RateLimiter } from "../../limiter/rate-limiter.ts";
import type { Scene } from "./act.ts";

/** A call with the key `web`, which charges `search` and `acme`, too. */
const CALL = { entityId: "web", resource: "gpt-4" } as const;
const ESTIMATE = 500;
const COST = 730;
const TOO_MUCH = 4500;
const NEVER = 6000;

export async function showTraffic(scene: Scene): Promise<void> {
  const limiter = new RateLimiter(scene.repository);
  await adjustEstimate(limiter, scene);
  await giveBack(limiter, scene);
  await refuse(limiter, scene);
}

async function adjustEstimate(limiter: RateLimiter, { narrator }: Scene): Promise<void> {
  narrator.chapter(`An estimate of ${ESTIMATE} tokens that turns out to be ${COST}`);
  const before = await tokensLeft(limiter);
  const during = await limiter.run(
    { ...CALL, consume: { rpm: 1, tpm: ESTIMATE } },
    async (lease) => {
      const left = await tokensLeft(limiter);
      lease.adjust({ tpm: COST - ESTIMATE });
      return left;
    },
  );
  const after = await tokensLeft(limiter);
  narrator.table([
    ["tokens left for", ...before.map(({ entityId }) => entityId)],
    ["before the call", ...amounts(before)],
    ["while it runs", ...amounts(during)],
    ["afterwards", ...amounts(after)],
  ]);
}

async function giveBack(limiter: RateLimiter, { narrator }: Scene): Promise<void> {
  narrator.chapter("A call that fails gives back what it took");
  const failure = new Error("the model is out of order");
  try {
    await limiter.run({ ...CALL, consume: { rpm: 1, tpm: ESTIMATE } }, () => {
      throw failure;
    });
  } catch (error) {
    if (error !== failure) throw error;
  }
  const left = await tokensLeft(limiter);
  narrator.table([
    ["tokens left for", ...left.map(({ entityId }) => entityId)],
    ["afterwards", ...amounts(left)],
  ]);
}

async function refuse(limiter: RateLimiter, { narrator, pass }: Scene): Promise<void> {
  narrator.chapter(`${TOO_MUCH} tokens are too much just now`);
  const request = { ...CALL, consume: { rpm: 1, tpm: TOO_MUCH } };
  const { good, bad } = narrator.palette;
  const decision = await limiter.tryAcquire(request);
  if (decision.granted) return decision.lease.rollback();
  narrator.table([
    ["entity", "limit", "available", "requested", ""],
    ...decision.statuses.map((status) => [
      status.entityId,
      status.limitName,
      String(status.available),
      String(status.requested),
      status.exceeded ? bad(`${status.deficit} missing`) : good("enough"),
    ]),
  ]);
  const seconds = decision.retryAfterSeconds;
  narrator.say(`  ${bad("refused")}, nothing was taken; again in ${seconds.toFixed(1)} s`);
  pass(seconds);
  const again = await limiter.tryAcquire(request);
  if (again.granted) await again.lease.commit();
  narrator.say(`  ${again.granted ? good("granted") : bad("refused")} after that time`);
  const never = await limiter.timeUntilAvailable({ ...CALL, needed: { tpm: NEVER } });
  if (never === Number.POSITIVE_INFINITY) {
    narrator.say(`  ${NEVER} tokens at once would never fit, and are refused as such`);
  }
}

/** The state of `tpm`: of the key, then of the project and the tenant it charges. */
async function tokensLeft(limiter: RateLimiter): Promise<LimitStatus[]> {
  return (await limiter.status(CALL)).filter(({ limitName }) => limitName === "tpm");
}

function amounts(statuses: readonly LimitStatus[]): string[] {
  return statuses.map(({ available }) => String(available));
}
