import { RateLimiter } from "zae-limiter";
import { leaseOf, rateLimit } from "zae-limiter/fetch";

// Outside of the handler: one limiter for all calls that this instance serves.
const limiter = RateLimiter.open(process.env.LIMITER_URL ?? "memory:");

const limited = rateLimit(
  async (request) => {
    leaseOf(request)?.settle({ tpm: 730 });
    return Response.json({ path: new URL(request.url).pathname });
  },
  {
    limiter,
    limits: ["rpm:60", "tpm:10000"],
    entityId: (request) => request.headers.get("x-api-key") ?? undefined,
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
