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

/** Returns the format by the end of the path; `undefined` for paths that are not known. */
export function formatOf(method: string, path: string): Format | undefined {
  if (method.toUpperCase() !== "POST") return undefined;
  const trimmed = path.endsWith("/") ? path.slice(0, -1) : path;
  return FORMATS.find(([end]) => trimmed.endsWith(end))?.[1];
}

/** Azure names the deployment in the path: `/openai/deployments/NAME/chat/completions`. */
export function deploymentOf(path: string): string | undefined {
  const name = /\/deployments\/([^/]+)\//.exec(path)?.[1];
  return name === undefined ? undefined : decodeURIComponent(name);
}
