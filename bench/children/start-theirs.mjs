const startedAt = performance.now();
await import("rate-limiter-flexible");
console.log(performance.now() - startedAt);
