// Takes from chains of buckets with a clock of its own: each seed is a second ahead of the one
// before. The arguments are those of the file that it starts.

const [, , , , , seed] = process.argv;
const { now } = Date;
Date.now = () => now() + (Number(seed) - 3) * 1000;
await import("../postgres/chains.mjs");
