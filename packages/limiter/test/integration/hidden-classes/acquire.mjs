// Acquires, adjusts and commits, many at once and for many entities. Once the code is warm it says
// how old the process is, in milliseconds.
// Arguments: the built package, the table, the endpoint of local DynamoDB, how many calls follow.

const [, , index, table, endpoint, calls] = process.argv;
const ENTITIES = 400;
const IN_FLIGHT = 32;

const { RateLimiter } = await import(index);
const limiter = await RateLimiter.open(`dynamodb://${table}`, { endpoint, timeoutMs: 20_000 });
let left = 0;

async function work() {
  while (left > 0) {
    left -= 1;
    const entityId = `key-${left % ENTITIES}`;
    const consume = { rpm: 1, tpm: 500 };
    await limiter.run({ entityId, resource: "api", consume }, async (lease) => {
      lease.adjust({ tpm: 7 });
    });
  }
}

/** Many at a time, until the given number is done. */
async function acquire(count) {
  left = count;
  await Promise.all(Array.from({ length: IN_FLIGHT }, work));
}

await acquire(ENTITIES * 2);
console.log(performance.now());
await acquire(Number(calls));
await limiter.close();
