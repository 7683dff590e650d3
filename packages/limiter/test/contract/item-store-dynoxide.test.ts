/** The contract on dynoxide. */

import { describeEngine } from "@zae-limiter/test-engines/engines.ts";
import { itemStoreContract } from "@zae-limiter/test-support/item-store-contract.ts";
import { openTable, quirksOf } from "./item-store/dynamo-table.ts";

describeEngine("dynoxide", "DynamoDB", (engine) => {
  const options = { ...quirksOf(engine), many: 130 };
  itemStoreContract("our table", () => openTable(engine, {}), options);
});
