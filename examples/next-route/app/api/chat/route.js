import { leaseOf, rateLimit } from "zae-limiter/fetch";

/** Stands for a call to a model: the answer, and what it cost. */
const callModel = async (text) => ({ answer: text.toUpperCase(), tokens: text.length });

export const POST = rateLimit(
  async (request) => {
    const { answer, tokens } = await callModel(await request.text());
    leaseOf(request)?.settle({ tpm: tokens });
    return Response.json({ answer, tokens });
  },
  {
    limits: ["rpm:3", "tpm:1000"],
    // Next.js tells a route handler no address: name the key.
    entityId: (request) => request.headers.get("authorization")?.replace("Bearer ", ""),
    consume: { rpm: 1, tpm: 100 },
  },
);
