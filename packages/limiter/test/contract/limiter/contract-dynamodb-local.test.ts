/** The limiter's contract on DynamoDB Local. */

import { describeEngine } from "@zae-limiter/test-engines/engines.ts";
import { limiterContract } from "@zae-limiter/testing/limiter-contract/contract.ts";
import * as vitest from "vitest";
import { openTable, SLOW } from "./limiter-stores.ts";

describeEngine("dynamodb-local", "DynamoDB", (engine) => {
  limiterContract(vitest, "our table", () => openTable(engine), { remote: true, slow: SLOW });
});
