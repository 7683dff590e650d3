/**
 * The limiter's contract on DynamoDB Local, each night: `contract-dynoxide.test.ts` runs it by day,
 * and `item-store-dynamodb-local.test.ts` shows that both engines treat items alike.
 */

import { describeEngine } from "@zae-limiter/test-engines/engines.ts";
import { NIGHTLY_ONLY } from "@zae-limiter/test-support/effort.ts";
import { describeUnless } from "@zae-limiter/test-support/unless.ts";
import { limiterContract } from "@zae-limiter/testing/limiter-contract/contract.ts";
import * as vitest from "vitest";
import { openTable, SLOW } from "./limiter-stores.ts";

describeUnless(NIGHTLY_ONLY)("the limiter's contract", () => {
  describeEngine("dynamodb-local", "DynamoDB", (engine) => {
    limiterContract(vitest, "our table", () => openTable(engine), {
      remote: true,
      slow: SLOW,
      slots: true,
      aggregated: true,
    });
  });
});
