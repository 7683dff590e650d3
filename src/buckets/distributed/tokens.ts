/** Tokens of transactions: the store makes a transaction once, however often it is sent. */

import { type Random, randomBytes } from "../../domain/random.ts";

/** 32 characters; DynamoDB takes at most 36. */
const TOKEN_BYTES = 24;

export function newToken(random: Random, bytes = TOKEN_BYTES): string {
  return Buffer.from(randomBytes(random, bytes)).toString("base64url");
}
