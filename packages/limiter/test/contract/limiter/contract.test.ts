/** The limiter's contract in memory; other stores have files of their own, by their duration. */

import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { overTable } from "@zae-limiter/test-support/over-table.ts";
import { limiterContract } from "@zae-limiter/testing/limiter-contract/contract.ts";
import * as vitest from "vitest";
import { openItems, openItemTable, openMemory } from "./limiter-stores.ts";

limiterContract(vitest, "memory", openMemory);
limiterContract(vitest, "the table of an example", openItemTable);
limiterContract(vitest, "a custom store", () => openItems(Repository.over));
limiterContract(vitest, "items in memory", () => openItems(overTable));
