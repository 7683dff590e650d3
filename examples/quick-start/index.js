/** Five calls for a limit of three per minute, with a cost that is known afterwards. */

import { RateLimiter } from "zae-limiter";

// Simulates the call that costs something.
const callModel = async (prompt) => ({ text: prompt.toUpperCase(), tokens: 10 * prompt.length });

const limiter = await RateLimiter.open("memory:");
await limiter.repository.limits.ensureSystem(["rpm:3", "tpm:1000"]);

/** Outcome of each call. */
export const outcomes = [];
for (let call = 1; call <= 5; call += 1) {
  const decision = await limiter.tryAcquire({
    entityId: "key-1",
    resource: "gpt-4",
    consume: { rpm: 1, tpm: 100 }, // an estimate of the tokens
  });
  if (!decision.granted) {
    outcomes.push(`call ${call}: refused, retry after ${decision.retryAfterHeader} s`);
    continue;
  }
  const { text, tokens } = await callModel("hello");
  decision.lease.settle({ tpm: tokens }); // what it really cost
  await decision.lease.commit();
  outcomes.push(`call ${call}: ${text}, ${tokens} tokens`);
}
for (const line of outcomes) console.log(line);
await limiter.close();
