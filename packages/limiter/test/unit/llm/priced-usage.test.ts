/**
 * Answers of providers and what they cost by the price list of their model. The costs were worked
 * out by hand, part by part, as the comments show.
 */

import { amountsOf } from "@zae-limiter/limiter/llm/amounts.ts";
import { formatOf } from "@zae-limiter/limiter/llm/formats/format.ts";
import { describe, expect, test } from "vitest";
import { Price, type PriceSpec } from "../../../src/domain/price.ts";

/** Dollars for a million tokens, which are micro-dollars for one. */
const PRICES = {
  "gpt-4o": { input: "2.5", cachedInput: "1.25", output: "10" },
  "gpt-4o-audio": { input: "2.5", output: "10", audioInput: "40", audioOutput: "80" },
  "gpt-5": {
    input: "1.25",
    cachedInput: "0.125",
    output: "10",
    tiers: {
      flex: { input: "0.625", cachedInput: "0.0625", output: "5" },
      priority: { input: "2.5", cachedInput: "0.25", output: "20" },
      batch: { input: "0.625", cachedInput: "0.0625", output: "5" },
    },
  },
  "gpt-5-nano": { input: "0.05", cachedInput: "0.005", output: "0.4" },
  "gpt-5.5": {
    input: "5",
    cachedInput: "0.5",
    output: "30",
    longContext: [{ above: 271_999, input: "10", cachedInput: "1", output: "45" }],
  },
  "o3-pro": { input: "20", output: "80" },
  "gpt-image": { input: "5", cachedInput: "1.25", imageInput: "10", output: "40" },
  "sonar-search": { input: "3", output: "15", perRequest: "0.006" },
  "half-price": { input: "2.5", output: "10", discount: "0.5" },
  embed: { input: "0.02" },
  sonnet: {
    input: "3",
    cachedInput: "0.3",
    cacheWrite: "3.75",
    cacheWrite1h: "6",
    output: "15",
    longContext: [
      {
        above: 200_000,
        input: "6",
        cachedInput: "0.6",
        cacheWrite: "7.5",
        cacheWrite1h: "12",
        output: "22.5",
      },
    ],
  },
  opus: {
    input: "5",
    cachedInput: "0.5",
    cacheWrite: "6.25",
    cacheWrite1h: "10",
    output: "25",
    tiers: { batch: { input: "2.5", cachedInput: "0.25", cacheWrite: "3.125", output: "12.5" } },
  },
  haiku: { input: "1", cachedInput: "0.1", cacheWrite: "1.25", cacheWrite1h: "2", output: "5" },
} as const satisfies Readonly<Record<string, PriceSpec>>;

type Row = readonly [what: string, model: keyof typeof PRICES, usage: object, micro: number];

const CHAT = "/v1/chat/completions";
const COMPLETIONS = "/v1/completions";
const EMBEDDINGS = "/v1/embeddings";
const MESSAGES = "/v1/messages";
const RESPONSES = "/v1/responses";

/** Returns what an answer costs, in micro-dollars. */
function costOf(path: string, model: keyof typeof PRICES, answer: object): number | undefined {
  const usage = formatOf("POST", path)?.readUsage(answer as Readonly<Record<string, unknown>>);
  const none = {
    requests: [],
    slots: [],
    tokens: [],
    inputTokens: [],
    outputTokens: [],
    given: [],
  };
  const count = { ...none, cachedTokens: 0, money: ["usd"] };
  const { input = 0, cached: read = 0, output = 0, ...parts } = usage ?? {};
  return amountsOf(count, { ...parts, input, cached: read, output }, Price.from(PRICES[model])).usd;
}

function chatUsage(input: number, output: number, more: object = {}): object {
  const total_tokens = input + output;
  return { usage: { prompt_tokens: input, completion_tokens: output, total_tokens, ...more } };
}

function responseUsage(input: number, output: number, more: object = {}): object {
  return { usage: { input_tokens: input, output_tokens: output, ...more } };
}

const cached = (tokens: number) => ({ prompt_tokens_details: { cached_tokens: tokens } });
const cachedInput = (tokens: number) => ({ input_tokens_details: { cached_tokens: tokens } });
const reasoning = (tokens: number) => ({ reasoning_tokens: tokens });
const read = (tokens: number) => ({ cache_read_input_tokens: tokens });
const tier = (name: string) => ({ service_tier: name });
const written = (fiveMinutes: number, hour: number) => ({
  cache_creation_input_tokens: fiveMinutes + hour,
  cache_creation: {
    ephemeral_5m_input_tokens: fiveMinutes,
    ephemeral_1h_input_tokens: hour,
  },
});

const CHATS: readonly Row[] = [
  // 1,000 x 2.5 + 500 x 10
  ["input and output", "gpt-4o", chatUsage(1000, 500), 7500],
  // 1 x 2.5 is rounded up
  ["a single token", "gpt-4o", chatUsage(1, 0), 3],
  // 2.5 + 10 = 12.5, rounded up once
  ["a token of each", "gpt-4o", chatUsage(1, 1), 13],
  ["nothing", "gpt-4o", chatUsage(0, 0), 0],
  // 1,200 x 2.5 + 4,096 x 1.25 + 77 x 10
  ["a cached prefix", "gpt-4o", chatUsage(5296, 77, cached(4096)), 8890],
  // 2,048 x 1.25 + 10 x 10
  ["a prompt that is cached as a whole", "gpt-4o", chatUsage(2048, 10, cached(2048)), 2660],
  // 128,000 x 2.5 + 16,384 x 10
  ["the largest call", "gpt-4o", chatUsage(128_000, 16_384), 483_840],
  // 900 x 1.25 + 1,500 x 10; reasoning is in the output
  [
    "reasoning",
    "gpt-5",
    chatUsage(900, 1500, { completion_tokens_details: reasoning(1200) }),
    16_125,
  ],
  // 7 x 1.25 = 8.75 + 3 x 10
  ["a part of a micro-dollar", "gpt-5", chatUsage(7, 3), 39],
  // 1,000 x 0.625 + 1,000 x 5
  ["the flex tier", "gpt-5", { ...chatUsage(1000, 1000), ...tier("flex") }, 5625],
  // 1,000 x 2.5 + 1,000 x 20
  ["the priority tier", "gpt-5", { ...chatUsage(1000, 1000), ...tier("priority") }, 22_500],
  // 1,000 x 1.25 + 1,000 x 10
  ["the default tier", "gpt-5", { ...chatUsage(1000, 1000), ...tier("default") }, 11_250],
  // 500 x 0.625 + 500 x 0.0625 + 10 x 5 = 312.5 + 31.25 + 50
  ["flex, cached", "gpt-5", { ...chatUsage(1000, 10, cached(500)), ...tier("flex") }, 394],
  // 3 x 0.05 + 1 x 0.4 = 0.55
  ["less than a micro-dollar", "gpt-5-nano", chatUsage(3, 1), 1],
  // 20 x 0.005 + 0 + 100 x 0.4 = 40.1
  ["a tenth of a micro-dollar too many", "gpt-5-nano", chatUsage(20, 100, cached(20)), 41],
  // 271,999 x 5 + 1,000 x 30
  ["a prompt at the bound", "gpt-5.5", chatUsage(271_999, 1000), 1_389_995],
  // 272,000 x 10 + 1,000 x 45
  ["a prompt above the bound", "gpt-5.5", chatUsage(272_000, 1000), 2_765_000],
  // 172,000 x 10 + 100,000 x 1 + 10 x 45: cached input counts for the bound
  ["a long cached prompt", "gpt-5.5", chatUsage(272_000, 10, cached(100_000)), 1_820_450],
  // 100 x 2.5 + 300 x 40 + 50 x 10 + 200 x 80
  [
    "sound",
    "gpt-4o-audio",
    chatUsage(400, 250, {
      prompt_tokens_details: { audio_tokens: 300 },
      completion_tokens_details: { audio_tokens: 200 },
    }),
    28_750,
  ],
  // $0.006 + 120 x 3 + 400 x 15
  ["a fee for the request", "sonar-search", chatUsage(120, 400), 12_360],
  // (1,000 x 2.5 + 100 x 10) / 2
  ["a discount", "half-price", chatUsage(1000, 100), 1750],
  // 10 x 1.25 + (5 + 40) x 10: the total shows that reasoning is counted apart
  [
    "reasoning that the output leaves out",
    "gpt-5",
    {
      usage: {
        prompt_tokens: 10,
        completion_tokens: 5,
        total_tokens: 55,
        completion_tokens_details: reasoning(40),
      },
    },
    463,
  ],
];

const RESPONSES_ROWS: readonly Row[] = [
  // 1,000 x 1.25 + 200 x 10
  ["input and output", "gpt-5", responseUsage(1000, 200), 3250],
  // 500 x 1.25 + 1,500 x 0.125 + 900 x 10 = 625 + 187.5 + 9,000
  ["a cached prefix", "gpt-5", responseUsage(2000, 900, cachedInput(1500)), 9813],
  // 300 x 20 + 5,000 x 80
  [
    "reasoning",
    "o3-pro",
    responseUsage(300, 5000, { output_tokens_details: reasoning(4900) }),
    406_000,
  ],
  // 272,000 x 10 + 2,000 x 45
  ["a long prompt", "gpt-5.5", responseUsage(272_000, 2000), 2_810_000],
  // 400 x 0.625 + 40 x 5
  ["the flex tier", "gpt-5", { ...responseUsage(400, 40), ...tier("flex") }, 450],
  // 50 x 5 + 800 x 10 + 1,000 x 40
  [
    "a picture as input",
    "gpt-image",
    responseUsage(850, 1000, { input_tokens_details: { image_tokens: 800 } }),
    48_250,
  ],
];

const MESSAGES_ROWS: readonly Row[] = [
  // 1,000 x 3 + 500 x 15
  ["input and output", "sonnet", responseUsage(1000, 500), 10_500],
  // 50 x 3 + 10,000 x 0.3 + 20 x 15
  [
    "a cached prefix that the input leaves out",
    "sonnet",
    responseUsage(50, 20, read(10_000)),
    3450,
  ],
  // 10 x 3 + 2,000 x 3.75 + 1 x 15
  ["a prefix written for five minutes", "sonnet", responseUsage(10, 1, written(2000, 0)), 7545],
  // 10 x 3 + 2,000 x 6 + 1 x 15
  ["a prefix written for an hour", "sonnet", responseUsage(10, 1, written(0, 2000)), 12_045],
  // 5 x 3 + 400 x 3.75 + 100 x 6 + 3,000 x 0.3 + 60 x 15
  [
    "both prefixes, and one that was read",
    "sonnet",
    responseUsage(5, 60, { ...written(400, 100), ...read(3000) }),
    3915,
  ],
  // 1,000 x 3.75, an older answer that does not say for how long
  [
    "a prefix written for a time that is not stated",
    "sonnet",
    responseUsage(0, 0, { cache_creation_input_tokens: 1000 }),
    3750,
  ],
  // 200,000 x 3 + 100 x 15
  ["a prompt at the bound", "sonnet", responseUsage(200_000, 100), 601_500],
  // 200,001 x 6 + 100 x 22.5
  ["a prompt above the bound", "sonnet", responseUsage(200_001, 100), 1_202_256],
  // 1 x 6 + 200,000 x 0.6 + 10 x 22.5
  ["a long prompt from the cache", "sonnet", responseUsage(1, 10, read(200_000)), 120_231],
  // 1,000 x 6 + 199,001 x 7.5 + 4 x 22.5 = 6,000 + 1,492,507.5 + 90
  [
    "a long prompt that is written",
    "sonnet",
    responseUsage(1000, 4, written(199_001, 0)),
    1_498_598,
  ],
  // 1,000 x 5 + 1,000 x 25
  ["a larger model", "opus", responseUsage(1000, 1000), 30_000],
  // 1,000 x 2.5 + 1,000 x 12.5
  ["a batch", "opus", responseUsage(1000, 1000, tier("batch")), 15_000],
  // 10 x 2.5 + 800 x 3.125 + 100 x 0.25 + 1 x 12.5
  [
    "a batch with prefixes",
    "opus",
    responseUsage(10, 1, { ...tier("batch"), ...written(800, 0), ...read(100) }),
    2563,
  ],
  // 1,000 x 5 + 10 x 25
  ["the standard tier", "opus", responseUsage(1000, 10, tier("standard")), 5250],
  // 3 x 1 + 7 x 0.1 + 2 x 5 = 13.7
  ["a few tokens", "haiku", responseUsage(3, 2, read(7)), 14],
  // 12,345 x 1 + 6,789 x 5
  ["odd numbers", "haiku", responseUsage(12_345, 6789), 46_290],
  // 64,000 x 5: only output
  ["output alone", "haiku", responseUsage(0, 64_000), 320_000],
];

describe.each([
  ["Chat Completions", CHAT, CHATS],
  ["Responses", RESPONSES, RESPONSES_ROWS],
  ["Messages", MESSAGES, MESSAGES_ROWS],
  // 100 x 2.5 + 20 x 10
  ["Completions", COMPLETIONS, [["input and output", "gpt-4o", chatUsage(100, 20), 450]]],
  // 8,191 x 0.02 = 163.82
  ["Embeddings", EMBEDDINGS, [["a long text", "embed", chatUsage(8191, 0), 164]]],
] as readonly (readonly [string, string, readonly Row[]])[])("%s", (_, path, rows) => {
  test.each(rows)("%s of %s costs what the price list says", (_what, model, answer, micro) => {
    expect(costOf(path, model, answer)).toBe(micro);
  });
});
