/** The limiter's contract on SQLite. */

import { limiterContract } from "@zae-limiter/testing/limiter-contract/contract.ts";
import * as vitest from "vitest";
import { openFile } from "./limiter-stores.ts";

limiterContract(vitest, "sqlite", openFile, { slots: true });
