/**
 * Bytes as a text with one character per byte. Searching such a text is several times as fast as
 * searching bytes, its length is the number of bytes, and a chunk may be cut inside of a character.
 */

/** Returns one character per byte. */
export function byteTextOf(bytes: Uint8Array): string {
  const buffer = Buffer.isBuffer(bytes)
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return buffer.toString("latin1");
}

/** Returns the bytes again. */
export function bytesOf(byteText: string): Uint8Array {
  return Buffer.from(byteText, "latin1");
}

/** Returns the text whose UTF-8 the bytes are. */
export function decoded(byteText: string): string {
  return Buffer.from(byteText, "latin1").toString("utf8");
}
