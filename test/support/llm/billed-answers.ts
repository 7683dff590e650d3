/** Answers of a provider to one call, whose tokens are counted: a token of text is four bytes. */

/** APIs that the double speaks. */
export type BilledApi = "chat" | "responses" | "messages" | "embeddings";

/** Tokens of one call. */
export interface BilledTokens {
  readonly input: number;
  /** Tokens that no answer shows. */
  readonly reasoning: number;
  /** Tokens whose text the answer has. */
  readonly text: number;
}

/** Ways in which an answer states its usage; all but `true` are lies. */
export const USAGE_WORDS = [
  "true",
  "missing",
  "null",
  "negative",
  "fraction",
  "absurd",
  "text",
] as const;
export type UsageWord = (typeof USAGE_WORDS)[number];

/** One event of a stream, with the tokens that were generated for it. */
export interface BilledEvent {
  readonly data: object | "[DONE]";
  readonly tokens: number;
}

/** The text of one token. */
export const TOKEN_TEXT = "word";

const REASONED = { role: "assistant", content: "", refusal: null };

/** Returns a count as the answer states it. */
function told(word: UsageWord, count: number): unknown {
  if (word === "negative") return -count - 1;
  if (word === "fraction") return count + 0.5;
  if (word === "absurd") return 1e15;
  return word === "text" ? String(count) : count;
}

function usageOf(api: BilledApi, word: UsageWord, tokens: BilledTokens): object {
  if (word === "missing") return {};
  if (word === "null") return { usage: null };
  const input = told(word, tokens.input);
  const output = told(word, tokens.reasoning + tokens.text);
  const reasoning = { reasoning_tokens: tokens.reasoning };
  if (api === "embeddings") return { usage: { prompt_tokens: input, total_tokens: input } };
  if (api === "messages") return { usage: { input_tokens: input, output_tokens: output } };
  if (api === "responses") {
    const details = { output_tokens_details: reasoning };
    return { usage: { input_tokens: input, output_tokens: output, ...details } };
  }
  const details = { completion_tokens_details: reasoning };
  return { usage: { prompt_tokens: input, completion_tokens: output, ...details } };
}

/** Returns a whole answer in JSON. */
export function wholeAnswer(
  api: BilledApi,
  id: string,
  model: string,
  tokens: BilledTokens,
  word: UsageWord = "true",
): object {
  const text = TOKEN_TEXT.repeat(tokens.text);
  const usage = usageOf(api, word, tokens);
  switch (api) {
    case "embeddings": {
      const data = [{ object: "embedding", index: 0, embedding: [0.5, -0.5] }];
      return { object: "list", model, data, ...usage };
    }
    case "chat": {
      const message = { role: "assistant", content: text, refusal: null };
      const choices = [{ index: 0, message, logprobs: null, finish_reason: "stop" }];
      return { id, object: "chat.completion", created: 1_753_000_000, model, choices, ...usage };
    }
    case "messages": {
      const content = [{ type: "text", text }];
      const end = { stop_reason: "end_turn", stop_sequence: null };
      return { id, type: "message", role: "assistant", model, content, ...end, ...usage };
    }
    case "responses": {
      const content = [{ type: "output_text", text, annotations: [] }];
      const message = { type: "message", id: `msg_${id}`, role: "assistant", content };
      const output = [{ ...message, status: "completed" }];
      return { id, object: "response", status: "completed", model, output, ...usage };
    }
  }
}

/** Returns a response that is made in the background, as long as it is not complete. */
export function pendingResponse(id: string, model: string, status: string): object {
  return { id, object: "response", status, background: true, model, output: [], usage: null };
}

/** Returns the events of a stream; the one of usage only where it was asked for. */
export function streamedAnswer(
  api: Exclude<BilledApi, "embeddings">,
  id: string,
  model: string,
  tokens: BilledTokens,
  word: UsageWord,
  asksForUsage: boolean,
): BilledEvent[] {
  if (api === "chat") return chatStream(id, model, tokens, word, asksForUsage);
  return api === "messages"
    ? messagesStream(id, model, tokens, word)
    : responsesStream(id, model, tokens, word);
}

/** Returns one event for each token of text. */
function texts({ text }: BilledTokens, event: (text: string) => object): BilledEvent[] {
  return Array.from({ length: text }, () => ({ data: event(TOKEN_TEXT), tokens: 1 }));
}

function chatStream(
  id: string,
  model: string,
  tokens: BilledTokens,
  word: UsageWord,
  asksForUsage: boolean,
): BilledEvent[] {
  const chunk = (choices: object[], more: object = {}) => {
    return { id, object: "chat.completion.chunk", created: 1_753_000_000, model, choices, ...more };
  };
  const delta = (fields: object, finish: string | null = null) => [
    { index: 0, delta: fields, logprobs: null, finish_reason: finish },
  ];
  const usage = { data: chunk([], usageOf("chat", word, tokens)), tokens: 0 };
  return [
    { data: chunk(delta(REASONED)), tokens: tokens.reasoning },
    ...texts(tokens, (content) => chunk(delta({ content }))),
    { data: chunk(delta({}, "stop")), tokens: 0 },
    ...(asksForUsage && word !== "missing" ? [usage] : []),
    { data: "[DONE]", tokens: 0 },
  ];
}

function messagesStream(
  id: string,
  model: string,
  tokens: BilledTokens,
  word: UsageWord,
): BilledEvent[] {
  const begun = { ...tokens, reasoning: 0, text: 1 };
  const whole = wholeAnswer("messages", id, model, begun, word);
  const message = { ...whole, content: [], stop_reason: null };
  const block = { type: "text", text: "" };
  return [
    { data: { type: "message_start", message }, tokens: tokens.reasoning },
    { data: { type: "content_block_start", index: 0, content_block: block }, tokens: 0 },
    { data: { type: "ping" }, tokens: 0 },
    ...texts(tokens, (text) => {
      return { type: "content_block_delta", index: 0, delta: { type: "text_delta", text } };
    }),
    { data: { type: "content_block_stop", index: 0 }, tokens: 0 },
    {
      data: {
        type: "message_delta",
        delta: { stop_reason: "end_turn", stop_sequence: null },
        ...usageOf("messages", word, tokens),
      },
      tokens: 0,
    },
    { data: { type: "message_stop" }, tokens: 0 },
  ];
}

function responsesStream(
  id: string,
  model: string,
  tokens: BilledTokens,
  word: UsageWord,
): BilledEvent[] {
  const response = wholeAnswer("responses", id, model, tokens, word);
  const begun = { ...response, status: "in_progress", output: [], usage: null };
  const item = { item_id: `msg_${id}`, output_index: 0, content_index: 0 };
  let sequence = 0;
  return [
    { data: { type: "response.created", sequence_number: 0, response: begun }, tokens: 0 },
    {
      data: { type: "response.in_progress", sequence_number: 1, response: begun },
      tokens: tokens.reasoning,
    },
    ...texts(tokens, (delta) => {
      sequence += 1;
      return { type: "response.output_text.delta", sequence_number: sequence + 1, ...item, delta };
    }),
    {
      data: { type: "response.completed", sequence_number: sequence + 2, response },
      tokens: 0,
    },
  ];
}
