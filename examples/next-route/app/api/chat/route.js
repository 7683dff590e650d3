import { leaseOf, rateLimit } from "zae-limiter/fetch";

/** Simulates a call to a model: returns the answer and its cost. */
const callModel = async (text) => ({ answer: text.toUpperCase(), tokens: text.length });

export const POST = rateLimit(
  async (request) => {
    const { answer, tokens } = await callModel(await request.text());
    leaseOf(request)?.settle({ tpm: tokens });
    return Response.json({ answer, tokens });
  },
  {
    limits: ["rpm:3", "tpm:1000"],
    // A route handler of Next.js gets no address: name the key.
    entityId: (request) => request.headers.get("authorization")?.replace("Bearer ", ""),
    consume: { rpm: 1, tpm: 100 },
  },
);
