/** Which API a request is for. */

import { anthropicMessages } from "./anthropic-messages.ts";
import type { Format } from "./format.ts";
import { openaiChat, openaiCompletions } from "./openai-chat.ts";
import { openaiEmbeddings } from "./openai-embeddings.ts";
import { openaiResponses } from "./openai-responses.ts";

const FORMATS: readonly (readonly [string, Format])[] = [
  ["/chat/completions", openaiChat],
  ["/completions", openaiCompletions],
  ["/responses", openaiResponses],
  ["/embeddings", openaiEmbeddings],
  ["/messages", anthropicMessages],
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

/** Azure names the deployment in the path: `/openai/deployments/NAME/chat/completions`. */
export function deploymentOf(path: string): string | undefined {
  const name = /\/deployments\/([^/]+)\//.exec(path)?.[1];
  try {
    return name && decodeURIComponent(name);
  } catch {
    // It has a percent sign that begins no escape.
    return name;
  }
}
