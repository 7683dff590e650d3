/** Randomness is an argument: callers pass a source of random numbers. */

/** A number in [0, 1). */
export type Random = () => number;

const TWO_21 = 2_097_152;
const TWO_53 = 9_007_199_254_740_992;

/** Drawn at a time, because one call of the system's source costs as much as a hundred numbers. */
const WORDS = 512;
let words: Uint32Array<ArrayBuffer> | undefined;
let drawn = WORDS;

/** Random numbers of this machine, good enough for ids that must not collide between processes. */
export const systemRandom: Random = () => {
  if (drawn === WORDS) {
    words = crypto.getRandomValues(words ?? new Uint32Array(WORDS));
    drawn = 0;
  }
  const high = words?.[drawn] as number;
  const low = words?.[drawn + 1] as number;
  drawn += 2;
  return fractionOf(high, low);
};

/** Returns a number in [0, 1) of the 53 bits that it can have, from two words of 32 bits. */
export function fractionOf(high: number, low: number): number {
  return (high * TWO_21 + (low & (TWO_21 - 1))) / TWO_53;
}

/**
 * Random numbers of this process, for a store that no other process sees. The system's source would
 * have to be loaded first, which takes as long as a tenth of a start.
 */
export const processRandom: Random = () => Math.random();

/** Returns a whole number in [0, below). */
export function randomInteger(random: Random, below: number): number {
  return Math.floor(random() * below);
}

/** Bytes drawn one by one. */
export function randomBytes(random: Random, count: number): Uint8Array {
  const bytes = new Uint8Array(count);
  for (let at = 0; at < count; at += 1) bytes[at] = randomInteger(random, 256);
  return bytes;
}

/** 32 characters: DynamoDB takes at most 36 as the token of a transaction. */
const TOKEN_BYTES = 24;

/** Returns random text that is practically unique: four characters for three bytes. */
export function randomToken(random: Random, bytes = TOKEN_BYTES): string {
  return Buffer.from(randomBytes(random, bytes)).toString("base64url");
}
