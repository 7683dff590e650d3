import { rateLimit } from "zae-limiter/express";

/** Returns a middleware; Koa has the request and the response of `node:http` in its context. */
export function koaRateLimit(options) {
  const limit = rateLimit(options);
  return async (ctx, next) => {
    ctx.req.ip = ctx.ip; // by the rules of `app.proxy`
    const { passed, error } = await new Promise((resolve) => {
      ctx.res.once("close", () => resolve({ passed: false })); // answered, or the client is gone
      limit(ctx.req, ctx.res, (error) => resolve({ passed: !error, error }));
    });
    if (error) throw error;
    ctx.respond = passed;
    ctx.state.lease = ctx.req.lease;
    if (passed) await next();
  };
}
