// Both contracts on the table, with the functions of the test runner: `npm test`.

import * as vitest from "vitest";
import { Repository } from "zae-limiter";
import { itemStoreContract, limiterContract } from "zae-limiter/testing";
import { MapDatabase, MapTable } from "./map-table.js";

itemStoreContract(vitest, "a map", async () => {
  const store = new MapTable();
  return { store, close: () => store.close() };
});

limiterContract(vitest, "a map", async () => {
  const database = new MapDatabase();
  return {
    // A client with a connection of its own, which the suite closes.
    open: (options) => Repository.over(new MapTable(database), options),
    close: async () => database.cells.clear(),
  };
});
