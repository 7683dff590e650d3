/** Sends answers piece by piece, and counts the tokens of each piece when it is generated. */

import type { ServerResponse } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import { gzipSync } from "node:zlib";

/** Bytes of an answer, and the tokens that are generated for them. */
export interface Piece {
  readonly bytes: Buffer;
  readonly tokens: number;
}

/** Returns an event of a stream as bytes. */
export function framed(data: object | "[DONE]", lineEnd: string, isNamed: boolean): Buffer {
  const text = data === "[DONE]" ? data : JSON.stringify(data);
  const name = isNamed ? `event: ${(data as { type: string }).type}${lineEnd}` : "";
  return Buffer.from(`${name}data: ${text}${lineEnd}${lineEnd}`);
}

/** Cuts an answer at a part of its bytes; a piece that is cut has been generated before. */
export function cut(pieces: readonly Piece[], part: number): [Piece[], Piece[]] {
  let left = Math.floor(part * pieces.reduce((sum, { bytes }) => sum + bytes.length, 0));
  const before: Piece[] = [];
  const after: Piece[] = [];
  for (const piece of pieces) {
    const { bytes, tokens } = piece;
    if (left >= bytes.length) before.push(piece);
    else if (left <= 0) after.push(piece);
    else {
      before.push({ bytes: bytes.subarray(0, left), tokens });
      after.push({ bytes: bytes.subarray(left), tokens: 0 });
    }
    left -= bytes.length;
  }
  return [before, after];
}

/** Sends pieces one by one, as far as there is a reader, and adds what they cost to the bill. */
export async function sendAll(
  response: ServerResponse,
  bill: { output: number },
  pieces: readonly Piece[],
): Promise<void> {
  for (const { bytes, tokens } of pieces) {
    if (response.destroyed) return;
    bill.output += tokens;
    await written(response, bytes);
    // The reader gets its turn, so that a hang-up is seen before the next token.
    await nextTurn();
  }
}

/** Compresses all pieces into one, which has cost the tokens of all. */
export function compressed(pieces: readonly Piece[]): Piece[] {
  const bytes = gzipSync(Buffer.concat(pieces.map((piece) => piece.bytes)));
  return [{ bytes, tokens: pieces.reduce((sum, { tokens }) => sum + tokens, 0) }];
}

async function written(response: ServerResponse, bytes: Buffer): Promise<void> {
  await new Promise<void>((resolve) => {
    response.once("close", resolve);
    response.write(bytes, () => {
      response.off("close", resolve);
      resolve();
    });
  });
}

/** Answers with JSON. */
export function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}
