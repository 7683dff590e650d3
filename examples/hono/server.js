import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { hashKey, rateLimit } from "zae-limiter/hono";

/** Simulates a call to a model: returns the answer and its cost. */
const callModel = async (text) => ({ answer: text.toUpperCase(), tokens: text.length });

/** The customer of each key, by the key's name: a table of yours. A made-up key has none: 401. */
const customers = new Map([
  [hashKey("key-1"), "customer-1"],
  [hashKey("key-2"), "customer-2"],
]);

const app = new Hono();
app.use(
  "/chat",
  rateLimit({
    limits: ["rpm:3", "tpm:1000"],
    entityId: (c) => customers.get(hashKey(c.req.header("authorization"))),
    consume: { rpm: 1, tpm: 100 },
  }),
);
app.get("/health", (c) => c.text("ok"));
app.post("/chat", async (c) => {
  const { answer, tokens } = await callModel(await c.req.text());
  c.var.lease?.settle({ tpm: tokens });
  return c.json({ answer, tokens });
});

export const server = serve({ fetch: app.fetch, port: Number(process.env.PORT ?? 3000) });
