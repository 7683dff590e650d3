/** Embeddings of OpenAI: input only, never streamed. */

import type { Format } from "./format.ts";
import { completionUsage } from "./openai-usage.ts";

export const openaiEmbeddings: Format = {
  api: "embeddings",
  provider: "openai",
  promptFields: ["input"],
  maxFields: [],
  readUsage: (answer) => {
    const usage = completionUsage(answer);
    return usage && { ...usage, output: 0 };
  },
  readEvent: () => ({}),
};
