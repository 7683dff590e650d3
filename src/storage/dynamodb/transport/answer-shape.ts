/**
 * What an answer must have. A proxy or a broken server may answer `200` with an empty body: that is
 * no answer, and must not be taken for "there is nothing".
 */

import type { OperationName } from "./operations.ts";

/** The field without which an answer says nothing. */
const REQUIRED: Readonly<Partial<Record<OperationName, string>>> = {
  BatchGetItem: "Responses",
  Query: "Items",
  Scan: "Items",
  TransactGetItems: "Responses",
};

/** An answer without the field that says what was found. */
export class EmptyAnswer extends Error {
  override readonly name = "EmptyAnswer";

  constructor(operation: OperationName) {
    super(`the answer to ${operation} has no ${REQUIRED[operation]}`);
  }
}

export function isComplete(operation: OperationName, output: object): boolean {
  const field = REQUIRED[operation];
  return field === undefined || (output as Record<string, unknown>)[field] !== undefined;
}
