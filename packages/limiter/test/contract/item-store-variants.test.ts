/** The contract once more, as far as the shape of the table or the way to it matters. */

import { describeEngines } from "@zae-limiter/test-engines/engines.ts";
import { indexContract, itemStoreContract } from "@zae-limiter/test-support/item-store-contract.ts";
import { openTable, quirksOf } from "./item-store/dynamo-table.ts";

describeEngines("DynamoDB", (engine) => {
  const options = { ...quirksOf(engine), many: 60 };
  indexContract(
    "a table of the Python library",
    () => openTable(engine, { gsi2Projection: "ALL", lsis: true }),
    { ...options, gsi2Projection: "ALL" },
  );
  // The other engine proves nothing about the transport that this one does not.
  if (engine.name === "dynoxide") {
    const open = () => openTable(engine, {}, "sdk");
    itemStoreContract("our table through the SDK", open, options);
  }
});
