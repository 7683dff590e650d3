import Fastify from "fastify";
import rateLimit, { hashKey } from "zae-limiter/fastify";

/** Simulates a call to a model: returns the answer and its cost. */
const callModel = async (text) => ({ answer: text.toUpperCase(), tokens: text.length });

/** The customer of each key, by the key's name: a table of yours. A made-up key has none: 401. */
const customers = new Map([
  [hashKey("key-1"), "customer-1"],
  [hashKey("key-2"), "customer-2"],
]);

const app = Fastify({ forceCloseConnections: true });
app.addContentTypeParser("*", { parseAs: "string" }, async (_request, body) => body);
app.get("/health", async () => "ok"); // outside of the scope: not limited

await app.register(async (scope) => {
  await scope.register(rateLimit, {
    limits: ["rpm:3", "tpm:1000"],
    entityId: (request) => customers.get(hashKey(request.headers.authorization)),
    consume: { rpm: 1, tpm: 100 },
  });
  scope.post("/chat", async (request) => {
    const { answer, tokens } = await callModel(request.body);
    request.lease?.settle({ tpm: tokens });
    return { answer, tokens };
  });
});

await app.listen({ port: Number(process.env.PORT ?? 3000) });
export const { server } = app;
