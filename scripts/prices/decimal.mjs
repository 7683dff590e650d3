/** Decimal text of prices, and which providers of the sources are in the table. */

/** Providers of the table, with their names in both sources. */
export const PROVIDERS = {
  openai: { genai: "openai", litellm: ["openai", "text-completion-openai"] },
  anthropic: { genai: "anthropic", litellm: ["anthropic"] },
  azure: { genai: "azure", litellm: ["azure"] },
  google: { genai: "google", litellm: ["gemini"] },
  "x-ai": { genai: "x-ai", litellm: ["xai"] },
  deepseek: { genai: "deepseek", litellm: ["deepseek"] },
  mistral: { genai: "mistral", litellm: ["mistral"] },
  cohere: { genai: "cohere", litellm: ["cohere", "cohere_chat"] },
  moonshotai: { genai: "moonshotai", litellm: ["moonshot"] },
  zai: { genai: "zai", litellm: ["zai"] },
  minimax: { genai: "minimax", litellm: ["minimax"] },
  perplexity: { genai: "perplexity", litellm: ["perplexity"] },
  voyageai: { genai: "voyageai", litellm: ["voyage"] },
  groq: { genai: "groq", litellm: ["groq"] },
  together: { genai: "together", litellm: ["together_ai"] },
  fireworks: { genai: "fireworks", litellm: ["fireworks_ai"] },
  cerebras: { genai: "cerebras", litellm: ["cerebras"] },
  openrouter: { genai: "openrouter", litellm: ["openrouter"] },
};

/** Returns dollars as text with at most six decimals, rounded up; `undefined` for 0 and less. */
export function dollars(value) {
  if (typeof value !== "number" || !(value > 0) || value >= 1_000_000) return undefined;
  // A price that a float has blurred, such as 0.30000000000000004, is the decimal it was meant as.
  const exact = Number(value.toPrecision(12));
  const millionths = Math.ceil(Number((exact * 1e6).toPrecision(12)));
  const [whole, decimals] = [Math.floor(millionths / 1e6), millionths % 1e6];
  const tail = String(decimals).padStart(6, "0").replace(/0+$/, "");
  return tail === "" ? String(whole) : `${whole}.${tail}`;
}

/** Removes absent fields. */
export function present(fields) {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
