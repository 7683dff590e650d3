/** Reads the answer to a poll of a background response, and settles its call by its usage. */

import type { AnswerMeter } from "@zae-limiter/limiter/llm/answer-meter.ts";
import { responses } from "@zae-limiter/limiter/llm/formats/openai.ts";
import type { MeteredCall } from "@zae-limiter/limiter/llm/metered-call.ts";
import { dataOf, SseSplitter } from "@zae-limiter/limiter/llm/sse.ts";
import {
  type Fields,
  type KnownUsage,
  objectOf,
  parsedObject,
  totalOf,
} from "@zae-limiter/limiter/llm/usage.ts";

/** A longer answer is handed on without being read: its call keeps its reserve. */
const READ_BYTES_MAX = 64 * 1024 * 1024;
const NOTHING = new Uint8Array(0);

export class PolledAnswer implements AnswerMeter {
  readonly pendingId = undefined;
  readonly #metered: MeteredCall;
  /** A client may ask for the events of the response again. */
  readonly #isStreamed: boolean;
  readonly #settle: (usage: KnownUsage) => Promise<void>;
  readonly #chunks: Uint8Array[] = [];
  #bytes = 0;

  /** `metered` is the poll itself, which counts as one request; `settle` ends the response. */
  constructor(
    metered: MeteredCall,
    isStreamed: boolean,
    settle: (usage: KnownUsage) => Promise<void>,
  ) {
    this.#metered = metered;
    this.#isStreamed = isStreamed;
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

  /** Returns the usage of the response; `undefined` while the provider works on it. */
  #usage(): KnownUsage | undefined {
    const bytes = Buffer.concat(this.#chunks);
    const answer = this.#isStreamed ? lastResponseIn(bytes) : parsedObject(bytes.toString("utf8"));
    const isOpen = answer === undefined || responses.pendingIdOf?.(answer) !== undefined;
    return isOpen ? undefined : responses.readUsage(answer);
  }
}

/** Returns the response in the last event that has one: the others have it as it was before. */
function lastResponseIn(bytes: Uint8Array): Fields | undefined {
  const splitter = new SseSplitter();
  const events = [...splitter.push(bytes), splitter.takeRest()];
  const found = events.map((event) => parsedObject(dataOf(event) ?? "")?.["response"]);
  return objectOf(found.findLast((each) => objectOf(each) !== undefined));
}
