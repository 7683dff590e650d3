/** Work under a lease whose `onError` fails: the process is warned. The rest is in the contract. */

import { once } from "node:events";
import { failureOf } from "@zae-limiter/test-support/outcomes.ts";
import { itUnless } from "@zae-limiter/test-support/unless.ts";
import { expect } from "vitest";
import { describeLimiterStores, milliOf, type Subject } from "./limiter-stores.ts";

const RESOURCE = "gpt-4";
const USER = { entityId: "user-1", resource: RESOURCE };
const REQUEST = { ...USER, limits: ["rpm:100", "tpm:1000"], consume: { rpm: 1, tpm: 500 } };

/** `rpm` and `tpm` in tokens: what is left, and what was consumed. */
async function books(subject: Subject): Promise<string> {
  const [rpm, tpm] = await Promise.all(
    ["rpm", "tpm"].map((name) => milliOf(subject, "user-1", RESOURCE, name)),
  );
  const show = (milli: typeof rpm) =>
    milli === undefined ? "none" : `${milli.balance / 1000} left ${milli.consumed / 1000} used`;
  return `rpm ${show(rpm)}, tpm ${show(tpm)}`;
}

const UNTOUCHED = "rpm 100 left 0 used, tpm 1000 left 0 used";

class UserError extends Error {}

describeLimiterStores("run", (store) => {
  itUnless(store.slow)(
    "run refunds and rethrows the error of the work when onError itself fails",
    async () => {
      const subject = await store.open();
      const error = new UserError("mine");
      const broken = () => {
        throw new UserError("of onError");
      };
      for (const onError of [broken, () => "perhaps" as "commit"]) {
        const warned = once(process, "warning");
        const run = subject.limiter.run({ ...REQUEST, onError }, () => Promise.reject(error));
        expect(await failureOf(run)).toBe(error);
        expect(await warned).toMatchObject([{ code: "ZAEL_ON_ERROR_FAILED" }]);
        expect(await books(subject)).toBe(UNTOUCHED);
      }
    },
  );
});
