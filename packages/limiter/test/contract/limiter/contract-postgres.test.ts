/** The limiter's contract on PostgreSQL. */

import { describePostgres } from "@zae-limiter/test-engines/postgres.ts";
import { limiterContract } from "@zae-limiter/testing/limiter-contract/contract.ts";
import * as vitest from "vitest";
import { openPostgres } from "./limiter-stores.ts";

describePostgres("the limiter", (url) => {
  limiterContract(vitest, "postgres", () => openPostgres(url), { slots: true });
});
