import Fastify from "fastify";
import rateLimit from "zae-limiter/fastify";

/** Simulates a call to a model: returns the answer and its cost. */
const callModel = async (text) => ({ answer: text.toUpperCase(), tokens: text.length });

const app = Fastify({ forceCloseConnections: true });
app.addContentTypeParser("*", { parseAs: "string" }, async (_request, body) => body);
app.get("/health", async () => "ok"); // outside of the scope: not limited

await app.register(async (scope) => {
  await scope.register(rateLimit, {
    limits: ["rpm:3", "tpm:1000"],
    entityId: (request) => request.headers.authorization?.replace("Bearer ", ""),
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
