import { RateLimiter } from "zae-limiter";
import { hashKey, leaseOf, rateLimit } from "zae-limiter/fetch";

// Outside of the handler: one limiter for all calls that this instance serves.
const limiter = RateLimiter.open(process.env.LIMITER_URL ?? "memory:");

/** The customer of each key, by the key's name: a table of yours. A made-up key has none: 401. */
const customers = new Map([[hashKey("key-1"), "customer-1"]]);

const limited = rateLimit(
  async (request) => {
    leaseOf(request)?.settle({ tpm: 730 });
    return Response.json({ path: new URL(request.url).pathname });
  },
  {
    limiter,
    limits: ["rpm:60", "tpm:10000"],
    entityId: (request) => customers.get(hashKey(request.headers.get("x-api-key"))),
  },
);

/** Handles requests of an HTTP API (payload format 2.0), or of a function URL. */
export async function handler({ rawPath, headers, body, requestContext }) {
  const { domainName, http } = requestContext;
  const url = `https://${domainName}${rawPath}`;
  const response = await limited(new Request(url, { method: http.method, headers, body }));
  const text = await response.text(); // read to its end: the lease is committed
  return { statusCode: response.status, headers: Object.fromEntries(response.headers), body: text };
}
