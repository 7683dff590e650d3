import { TRPCError } from "@trpc/server";
import { RateLimitExceeded } from "zae-limiter";

/** Returns a middleware of procedures: `t.procedure.use(limited(t, limiter))`. */
export function limited(t, limiter) {
  return t.middleware(async ({ ctx, next, path }) => {
    const request = { entityId: ctx.userId, resource: path, consume: { rpm: 1 } };
    try {
      return await limiter.run(request, (lease) => next({ ctx: { ...ctx, lease } }));
    } catch (error) {
      if (!(error instanceof RateLimitExceeded)) throw error;
      ctx.resHeaders?.set("Retry-After", error.retryAfterHeader);
      const message = `Rate limit exceeded, retry after ${error.retryAfterHeader} s`;
      throw new TRPCError({ code: "TOO_MANY_REQUESTS", message, cause: error });
    }
  });
}
