/** The contract once more, as far as the shape of the table or the way to it matters. */

import { describeEngines } from "@zae-limiter/test-engines/engines.ts";
import { NIGHTLY_ONLY } from "@zae-limiter/test-support/effort.ts";
import { indexContract, itemStoreContract } from "@zae-limiter/test-support/item-store-contract.ts";
import { describeUnless } from "@zae-limiter/test-support/unless.ts";
import { openTable, quirksOf } from "./item-store/dynamo-table.ts";

describeEngines("DynamoDB", (engine) => {
  const options = { ...quirksOf(engine), many: 60 };
  indexContract(
    "a table of the Python library",
    () => openTable(engine, { gsi2Projection: "ALL", lsis: true }),
    { ...options, gsi2Projection: "ALL" },
  );
  // The other engine proves nothing about the transport that this one does not. By day the acquires
  // of the limiter's contract go through the SDK.
  describeUnless(NIGHTLY_ONLY)("at night", () => {
    if (engine.name !== "dynoxide") return;
    const open = () => openTable(engine, {}, "sdk");
    itemStoreContract("our table through the SDK", open, options);
  });
});
