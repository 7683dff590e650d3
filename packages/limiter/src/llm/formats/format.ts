/** What differs between the APIs of providers. */

import type { Fields, KnownUsage } from "../usage.ts";

/** The API of a call; `other` is one whose tokens are not counted. */
export type LlmApi = "chat" | "completions" | "responses" | "embeddings" | "messages" | "other";

/** What one event of a stream tells. */
export interface EventNews {
  readonly usage?: KnownUsage | undefined;
  /** The part of the answer in it. */
  readonly text?: string | undefined;
  /** The event is there only because the limiter asked for usage. */
  readonly isUsageOnly?: boolean;
}

/** How to read the requests and answers of one API. */
export interface Format {
  readonly api: LlmApi;
  /** The provider whose error format clients of this API expect. */
  readonly provider: "openai" | "anthropic";
  /** The fields of the request that the model reads. */
  readonly promptFields: readonly string[];
  /** The fields that bound the output. */
  readonly maxFields: readonly string[];
  /** The field that asks for several answers to one prompt. */
  readonly choicesField?: string;
  /** The field of a plain answer that holds its text; none: the answer is not text. */
  readonly answerField?: string;
  readonly readUsage: (answer: Fields) => KnownUsage | undefined;
  /** What stands before the text of an event that has nothing else of interest. */
  readonly textPrefix?: string;
  readonly readEvent: (event: Fields) => EventNews;
}
