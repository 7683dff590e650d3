import express from "express";
import { hashKey, rateLimit } from "zae-limiter/express";

/** Simulates a call to a model: returns the answer and its cost. */
const callModel = async (text) => ({ answer: text.toUpperCase(), tokens: text.length });

/** The customer of each key, by the key's name: a table of yours. A made-up key has none: 401. */
const customers = new Map([
  [hashKey("key-1"), "customer-1"],
  [hashKey("key-2"), "customer-2"],
]);

const app = express();
app.use(express.text({ type: () => true }));
app.use(
  rateLimit({
    limits: ["rpm:3", "tpm:1000"],
    entityId: (request) => customers.get(hashKey(request.headers.authorization)),
    consume: { rpm: 1, tpm: 100 },
    headers: ["draft", "openai"],
  }),
);
app.post("/chat", async (request, response) => {
  const { answer, tokens } = await callModel(request.body);
  request.lease?.settle({ tpm: tokens });
  response.json({ answer, tokens });
});

export const server = app.listen(process.env.PORT ?? 3000);
