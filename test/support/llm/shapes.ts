/** Answers in the formats of providers, as they were recorded, with other texts and numbers. */

/** A stream of events in JSON, each as the provider frames it. */
export function sse(events: readonly object[], { done = false, named = false, crlf = false } = {}) {
  const end = crlf ? "\r\n" : "\n";
  const framed = events.map((event) => {
    const name = named ? `event: ${(event as { type: string }).type}${end}` : "";
    return `${name}data: ${JSON.stringify(event)}${end}${end}`;
  });
  return framed.join("") + (done ? `data: [DONE]${end}${end}` : "");
}

const chunk = (choices: object[], more: object = {}) => ({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  created: 1_753_000_000,
  model: "gpt-4o-2024-08-06",
  service_tier: "default",
  system_fingerprint: "fp_1",
  choices,
  ...more,
});

const delta = (fields: object, finish: string | null = null) => ({
  index: 0,
  delta: fields,
  logprobs: null,
  finish_reason: finish,
});

export const chatUsage = {
  prompt_tokens: 19,
  completion_tokens: 10,
  total_tokens: 29,
  prompt_tokens_details: { cached_tokens: 8, audio_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 4, audio_tokens: 0 },
};

/** Text of a chat; `usage` in the place where a provider puts it. */
export function chatEvents(
  texts: readonly string[],
  usage: "own chunk" | "last choice" | "every chunk" | "x_groq" | "none" = "own chunk",
): object[] {
  const each = usage === "every chunk" ? { usage: chatUsage } : {};
  const last =
    usage === "last choice"
      ? { usage: chatUsage }
      : usage === "x_groq"
        ? { x_groq: { id: "req_1", usage: chatUsage } }
        : each;
  return [
    chunk([delta({ role: "assistant", content: "", refusal: null })], each),
    ...texts.map((content) => chunk([delta({ content })], each)),
    chunk([delta({}, "stop")], last),
    ...(usage === "own chunk" ? [chunk([], { usage: chatUsage })] : []),
  ];
}

export const chatToolEvents: object[] = [
  chunk([
    delta({
      role: "assistant",
      content: null,
      tool_calls: [
        { index: 0, id: "call_1", type: "function", function: { name: "weather", arguments: "" } },
      ],
    }),
  ]),
  chunk([delta({ tool_calls: [{ index: 0, function: { arguments: '{"city":' } }] })]),
  chunk([delta({ tool_calls: [{ index: 0, function: { arguments: '"Köln"}' } }] })]),
  chunk([delta({}, "tool_calls")]),
];

export const chatAnswer = {
  id: "chatcmpl-1",
  object: "chat.completion",
  created: 1_753_000_000,
  model: "gpt-4o-2024-08-06",
  choices: [
    {
      index: 0,
      message: { role: "assistant", content: "Hello there", refusal: null, annotations: [] },
      logprobs: null,
      finish_reason: "stop",
    },
  ],
  usage: chatUsage,
};

const responseUsage = {
  input_tokens: 36,
  input_tokens_details: { cached_tokens: 16 },
  output_tokens: 87,
  output_tokens_details: { reasoning_tokens: 64 },
  total_tokens: 123,
};

export const responsesAnswer = {
  id: "resp_1",
  object: "response",
  status: "completed",
  model: "gpt-4.1-2025-04-14",
  output: [
    {
      type: "message",
      id: "msg_1",
      status: "completed",
      role: "assistant",
      content: [{ type: "output_text", text: "Hi there", annotations: [] }],
    },
  ],
  usage: responseUsage,
};

export const responsesEvents: object[] = [
  {
    type: "response.created",
    sequence_number: 0,
    response: { ...responsesAnswer, status: "in_progress", output: [], usage: null },
  },
  {
    type: "response.output_text.delta",
    sequence_number: 1,
    item_id: "msg_1",
    output_index: 0,
    content_index: 0,
    delta: "Hi",
  },
  {
    type: "response.output_text.delta",
    sequence_number: 2,
    item_id: "msg_1",
    output_index: 0,
    content_index: 0,
    delta: " there",
  },
  { type: "response.completed", sequence_number: 3, response: responsesAnswer },
];

export const embeddingsAnswer = {
  object: "list",
  data: [{ object: "embedding", index: 0, embedding: [0.1, -0.2] }],
  model: "text-embedding-3-small",
  usage: { prompt_tokens: 8, total_tokens: 8 },
};

export const messagesAnswer = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "claude-test",
  content: [{ type: "text", text: "Hello there" }],
  stop_reason: "end_turn",
  stop_sequence: null,
  usage: {
    input_tokens: 25,
    cache_creation_input_tokens: 5,
    cache_read_input_tokens: 100,
    output_tokens: 15,
  },
};

/** A stream of Anthropic; without `ends` it breaks off before its last events. */
export function messagesEvents(texts: readonly string[], { ends = true } = {}): object[] {
  return [
    {
      type: "message_start",
      message: {
        ...messagesAnswer,
        content: [],
        stop_reason: null,
        usage: { ...messagesAnswer.usage, output_tokens: 1 },
      },
    },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "ping" },
    ...texts.map((text) => ({
      type: "content_block_delta",
      index: 0,
      delta: { type: "text_delta", text },
    })),
    { type: "content_block_stop", index: 0 },
    ...(ends
      ? [
          {
            type: "message_delta",
            delta: { stop_reason: "end_turn", stop_sequence: null },
            usage: { output_tokens: 15 },
          },
          { type: "message_stop" },
        ]
      : []),
  ];
}
