import { hashKey, leaseOf, rateLimit } from "zae-limiter/fetch";

/** Simulates a call to a model: returns the answer and its cost. */
const callModel = async (text) => ({ answer: text.toUpperCase(), tokens: text.length });

/** The customer of each key, by the key's name: a table of yours. A made-up key has none: 401. */
const customers = new Map([
  [hashKey("key-1"), "customer-1"],
  [hashKey("key-2"), "customer-2"],
]);

export const POST = rateLimit(
  async (request) => {
    const { answer, tokens } = await callModel(await request.text());
    leaseOf(request)?.settle({ tpm: tokens });
    return Response.json({ answer, tokens });
  },
  {
    limits: ["rpm:3", "tpm:1000"],
    // A route handler of Next.js gets no address, so the key names the entity.
    entityId: (request) => customers.get(hashKey(request.headers.get("authorization"))),
    consume: { rpm: 1, tpm: 100 },
  },
);
