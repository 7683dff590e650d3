/** Reads the answer to a poll of a background response, and settles its call by its usage. */

import type { AnswerMeter } from "@zae-limiter/limiter/llm/answer-meter.ts";
import { responses } from "@zae-limiter/limiter/llm/formats/openai.ts";
import type { MeteredCall } from "@zae-limiter/limiter/llm/metered-call.ts";
import { fieldsOf, type KnownUsage, totalOf } from "@zae-limiter/limiter/llm/usage.ts";

/** A longer answer is handed on without being read: its call keeps its reserve. */
const READ_BYTES_MAX = 64 * 1024 * 1024;
const NOTHING = new Uint8Array(0);

export class PolledAnswer implements AnswerMeter {
  readonly pendingId = undefined;
  readonly #metered: MeteredCall;
  readonly #settle: (usage: KnownUsage) => Promise<void>;
  readonly #chunks: Uint8Array[] = [];
  #bytes = 0;

  /** `metered` is the poll itself, which counts as one request; `settle` ends the response. */
  constructor(metered: MeteredCall, settle: (usage: KnownUsage) => Promise<void>) {
    this.#metered = metered;
    this.#settle = settle;
  }

  push(chunk: Uint8Array): Uint8Array {
    this.#bytes += chunk.length;
    if (this.#bytes <= READ_BYTES_MAX) this.#chunks.push(chunk);
    return chunk;
  }

  async finish(): Promise<{ rest: Uint8Array }> {
    await this.#metered.keepEstimate();
    const usage = this.#bytes <= READ_BYTES_MAX ? this.#usage() : undefined;
    // Some servers send zeros until they know better.
    const isKnown = usage?.input !== undefined && usage.output !== undefined && totalOf(usage) > 0;
    if (isKnown) await this.#settle(usage);
    return { rest: NOTHING };
  }

  #usage(): KnownUsage | undefined {
    try {
      const answer = fieldsOf(JSON.parse(Buffer.concat(this.#chunks).toString("utf8")));
      const isOpen = responses.pendingIdOf?.(answer) !== undefined;
      return isOpen ? undefined : responses.readUsage(answer);
    } catch {
      return undefined;
    }
  }
}
