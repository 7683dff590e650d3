/**
 * Bytes as a text with one character per byte. Searching such a text is several times as fast as
 * searching bytes, its length is the number of bytes, and a chunk may be cut inside of a character.
 */

/** Returns the same bytes as a buffer. */
export function bufferOf(bytes: ArrayBufferView): Buffer {
  if (Buffer.isBuffer(bytes)) return bytes;
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Returns one character per byte. */
export function byteTextOf(bytes: Uint8Array): string {
  return bufferOf(bytes).toString("latin1");
}

/** Returns the bytes again. */
export function bytesOf(byteText: string): Uint8Array {
  return Buffer.from(byteText, "latin1");
}

/** Returns the text whose UTF-8 the bytes are. */
export function decoded(byteText: string): string {
  return Buffer.from(byteText, "latin1").toString("utf8");
}
