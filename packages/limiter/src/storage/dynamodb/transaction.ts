/** One write of a transaction, as DynamoDB takes it. */

import type { TransactWriteItem } from "@aws-sdk/client-dynamodb";
import { encodeItem } from "../attribute-value.ts";
import { keyOfWrite } from "../checks.ts";
import { keyOf } from "../item.ts";
import type { Change, Write } from "../item-store.ts";
import { Expressions } from "./expression.ts";

/**
 * A transaction takes no update without an expression. Removing what cannot be there changes
 * nothing; it is the only expression that does.
 */
const NO_CHANGE: Change = { remove: ["zae-limiter/no-change"] };

/** Asks for the stored item in case the condition fails. */
export function compileWrite(table: string, write: Write): TransactWriteItem {
  const expressions = new Expressions();
  const where = { TableName: table, ReturnValuesOnConditionCheckFailure: "ALL_OLD" } as const;
  const Key = encodeItem({ ...keyOf(keyOfWrite(write)) });
  if ("put" in write) {
    const condition = expressions.condition(write.condition);
    const Item = encodeItem(write.put);
    return { Put: { ...where, Item, ...condition, ...expressions.attributes() } };
  }
  if ("update" in write) {
    const { UpdateExpression = expressions.update(NO_CHANGE).UpdateExpression } =
      expressions.update(write.change);
    const condition = expressions.condition(write.condition);
    const placeholders = expressions.attributes();
    return { Update: { ...where, Key, UpdateExpression, ...condition, ...placeholders } };
  }
  const { ConditionExpression } = expressions.condition(write.condition);
  const placeholders = expressions.attributes();
  if ("check" in write) {
    return { ConditionCheck: { ...where, Key, ConditionExpression, ...placeholders } };
  }
  return { Delete: { ...where, Key, ConditionExpression, ...placeholders } };
}
