/** How to read the requests and answers of an API, and which API a request is for. */

import { type Fields, fieldsOf, type KnownUsage, objectOf } from "../usage.ts";
import { messages, messageUsage } from "./anthropic.ts";
import {
  chat,
  completions,
  completionUsage,
  embeddings,
  responses,
  responseUsage,
} from "./openai.ts";

/** The API of a call; `other` is one whose tokens are not estimated. */
export type LlmApi = "chat" | "completions" | "responses" | "embeddings" | "messages" | "other";

/** News of one event of a stream. */
export interface EventNews {
  readonly usage?: KnownUsage | undefined;
  /** The part of the answer in it. */
  readonly text?: string | undefined;
  /** The event is there only because the limiter asked for usage. */
  readonly isUsageOnly?: boolean;
  /** Its usage is that of the whole answer. */
  readonly isLast?: boolean;
  /** The id of an answer that the provider still works on. */
  readonly pendingId?: string | undefined;
}

/** How to read the requests and answers of one API. */
export interface Format {
  readonly api: LlmApi;
  /** The provider whose error format clients of this API expect. */
  readonly provider: "openai" | "anthropic";
  /** The fields of the request that the model reads. */
  readonly promptFields: readonly string[];
  /** The fields of the request that name input which is stored at the provider. */
  readonly storedFields?: readonly string[];
  /** The fields that bound the output. */
  readonly maxFields: readonly string[];
  /** The fields that ask for several answers to one prompt, of which the largest is billed. */
  readonly choicesFields?: readonly string[];
  /** The field of a plain answer that holds its text; none: the answer is not text. */
  readonly answerField?: string;
  /** `false` for APIs without output, such as embeddings. */
  readonly hasOutput: boolean;
  /** Whether streams state usage only when `stream_options` of the request ask for it. */
  readonly isAskedForUsage?: true;
  readonly readUsage: (answer: Fields) => KnownUsage | undefined;
  readonly readEvent: (event: Fields) => EventNews;
  /** Returns the id of an answer that the provider still works on, which may be empty. */
  readonly pendingIdOf?: (answer: Fields) => string | undefined;
}

/** Reads usage in the shape of either provider, and estimates nothing. */
export const anyFormat: Format = {
  api: "other",
  provider: "openai",
  promptFields: [],
  maxFields: [],
  hasOutput: false,
  readUsage: anyUsage,
  readEvent: (event) => {
    const { response, message } = event;
    const usage = anyUsage(event) ?? anyUsage(fieldsOf(response)) ?? anyUsage(fieldsOf(message));
    return { usage, isLast: usage !== undefined };
  },
};

const FORMATS: readonly (readonly [string, Format])[] = [
  ["/chat/completions", chat],
  ["/completions", completions],
  ["/responses", responses],
  ["/embeddings", embeddings],
  ["/messages", messages],
];

/**
 * Returns the format by the end of the path; `undefined` for paths that are not known. Servers read
 * a path in other letters, or with more slashes, as the same one.
 */
export function formatOf(method: string, path: string): Format | undefined {
  if (method.toUpperCase() !== "POST") return undefined;
  const plain = path.toLowerCase().replace(/\/{2,}/g, "/");
  const trimmed = plain.endsWith("/") ? plain.slice(0, -1) : plain;
  return FORMATS.find(([end]) => trimmed.endsWith(end))?.[1];
}

/** Returns the deployment that a path of Azure names: `/openai/deployments/NAME/…`. */
export function deploymentOf(path: string): string | undefined {
  const name = /\/deployments\/([^/]+)\//.exec(path)?.[1];
  try {
    return name && decodeURIComponent(name);
  } catch {
    // It has a percent sign that begins no escape.
    return name;
  }
}

function anyUsage(answer: Fields): KnownUsage | undefined {
  const usage = objectOf(answer["usage"]);
  if (usage === undefined || !("input_tokens" in usage || "output_tokens" in usage)) {
    return completionUsage(answer);
  }
  const isAnthropic = "cache_read_input_tokens" in usage || "cache_creation_input_tokens" in usage;
  return isAnthropic ? messageUsage(answer) : responseUsage(answer);
}
