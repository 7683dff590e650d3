/** One write of a transaction, as DynamoDB takes it. */

import type { TransactWriteItem } from "@aws-sdk/client-dynamodb";
import { encodeItem } from "../attribute-value.ts";
import { keyOf } from "../item.ts";
import type { Write } from "../item-store.ts";
import { keyOfWrite } from "../transaction.ts";
import { Expressions } from "./expression.ts";

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
    const { UpdateExpression } = expressions.update(write.change);
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
