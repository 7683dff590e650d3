/**
 * Limits calls to language models: consumes an estimate, reads the usage from the answer, and sets
 * the final amounts.
 *
 * @module
 */

export { type AiSdkModel, type RateLimitMiddleware, rateLimitMiddleware } from "./ai-sdk.ts";
export type { LlmApi } from "./formats/format.ts";
export {
  type AnthropicMiddleware,
  type AnthropicRequest,
  anthropicMiddleware,
  limitFetch,
} from "./limit-fetch.ts";
export type { LlmCall, LlmCount, LlmFailure, LlmOptions } from "./options.ts";
export type { Reserve } from "./output-estimate.ts";
export type { Tokenizer } from "./prompt-size.ts";
