const startedAt = performance.now();
const { RateLimiter } = await import("../dist/index.js");
const limiter = await RateLimiter.open("memory:");
await limiter.acquire({ entityId: "a", resource: "b", limits: ["rpm:10"], consume: { rpm: 1 } });
console.log(performance.now() - startedAt);
