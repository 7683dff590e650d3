/** The limiter's contract on dynoxide, and its acquires through the SDK. */

import { describeEngine } from "@zae-limiter/test-engines/engines.ts";
import {
  limiterContract,
  singleAcquireContract,
} from "@zae-limiter/testing/limiter-contract/contract.ts";
import * as vitest from "vitest";
import { openTable } from "./limiter-stores.ts";

const REMOTE = { remote: true, slots: true, aggregated: true };

describeEngine("dynoxide", "DynamoDB", (engine) => {
  limiterContract(vitest, "our table", () => openTable(engine), REMOTE);
  singleAcquireContract(
    vitest,
    "our table through the SDK",
    () => openTable(engine, {}, "sdk"),
    REMOTE,
  );
});
