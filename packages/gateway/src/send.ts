/** Sends whole answers: refusals and errors of the gateway itself. */

import type { ServerResponse } from "node:http";
import type { RefusalAnswer } from "@zae-limiter/limiter/llm/refusal-answer.ts";

/** Does nothing where an answer has begun, or the client has hung up. */
export function send(response: ServerResponse, { status, headers, body }: RefusalAnswer): void {
  if (response.destroyed || response.headersSent) return;
  response.writeHead(status, { ...headers, "content-length": String(Buffer.byteLength(body)) });
  response.end(body);
}
