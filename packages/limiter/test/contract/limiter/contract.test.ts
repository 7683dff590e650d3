/**
 * The limiter's contract in memory. Other stores have files of their own, by their duration, and
 * `own-store.test.ts` runs it on a table.
 */

import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { overTable } from "@zae-limiter/test-support/over-table.ts";
import { limiterContract } from "@zae-limiter/testing/limiter-contract/contract.ts";
import * as vitest from "vitest";
import { openItems, openMemory } from "./limiter-stores.ts";

const TABLE = { slots: true, aggregated: true };

limiterContract(vitest, "memory", openMemory, { slots: true });
limiterContract(vitest, "a custom store", () => openItems(Repository.over), TABLE);
limiterContract(vitest, "items in memory", () => openItems(overTable), TABLE);
