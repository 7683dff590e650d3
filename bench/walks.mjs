/**
 * Measures the walks of a call through the house: how many files, functions and calls each runs, by
 * V8's own count. `npm run house` shows them; `--json` prints the files of each walk as well.
 */

import { once } from "node:events";
import { createServer, request as httpRequest } from "node:http";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { compiled, startCounting } from "./calls.mjs";
import { scratch, startDynoxide } from "./support.mjs";

const LIMITS = ["rpm:60000000", "tpm:60000000"];
const REQUEST = { entityId: "user", resource: "api", consume: { rpm: 1, tpm: 2 } };
/** Calls before the measured one, so that every cache is filled. */
const WARM_UPS = 50;
/** The time after a response in which a server ends its work for it. */
const REST_MS = 30;

/** Runs every group of walks; each calls `walk(name, work)` for what is to be counted. */
async function measureAll() {
  const count = await startCounting();
  const walks = [];
  const walk = async (name, work) => walks.push({ name, files: await count(work) });
  const engine = await startDynoxide();
  const { folder, remove } = scratch();
  try {
    await onDynamoDb(walk, engine.endpoint);
    await onEmbedded(walk, "memory", "memory:");
    await onEmbedded(walk, "SQLite", `sqlite:${join(folder, "walks.db")}`);
    await throughExpress(walk);
    await throughGateway(walk);
    await throughAggregator(walk, engine.endpoint);
  } finally {
    await engine.stop();
    remove();
  }
  return walks;
}

/** Opens a limiter on a new table, whose limits no walk reaches. */
export async function openTable(endpoint) {
  const { RateLimiter, Repository } = await compiled("index.js");
  const table = await Repository.createTable("walk", { endpoint, region: "us-east-1" });
  await table.limits.setSystem(LIMITS);
  await table.close();
  return RateLimiter.open("dynamodb://walk?region=us-east-1", { endpoint });
}

/** Returns a call that acquires and commits, after it has done so often enough to be warm. */
export async function warmAcquire(limiter, more = {}) {
  const acquire = async () => {
    const lease = await limiter.acquire({ ...REQUEST, ...more });
    await lease.commit();
  };
  await times(WARM_UPS, acquire);
  return acquire;
}

async function onDynamoDb(walk, endpoint) {
  const limiter = await openTable(endpoint);
  const { limits, entities } = limiter.repository;
  const acquire = await warmAcquire(limiter);
  await walk("DynamoDB: warm acquire and commit", acquire);
  await entities.create({ id: "parent" });
  await entities.create({ id: "child", parentId: "parent", cascade: true });
  const cascade = await warmAcquire(limiter, { entityId: "child" });
  await walk("DynamoDB: the same, with a cascade to a parent", cascade);
  await limits.setResource("small", ["rpm:10"]);
  const tryAll = () => limiter.tryAcquire({ ...REQUEST, resource: "small", consume: { rpm: 10 } });
  await times(3, tryAll);
  await walk("DynamoDB: refused from cached state", tryAll);
  const adjust = async (lease) => {
    lease.adjust({ tpm: 5 });
    await lease.commit();
  };
  await times(WARM_UPS, async () => adjust(await limiter.acquire(REQUEST)));
  const adjusted = await limiter.acquire(REQUEST);
  await walk("DynamoDB: adjust and commit, after the acquire", () => adjust(adjusted));
  await times(3, async () => (await limiter.acquire(REQUEST)).rollback());
  const returned = await limiter.acquire(REQUEST);
  await walk("DynamoDB: rollback, after the acquire", () => returned.rollback());
  await limits.setResource("api", ["rpm:5000", "tpm:900000"]);
  await acquire();
  await walk("DynamoDB: limits.setResource", () =>
    limits.setResource("api", ["rpm:6000", "tpm:900001"]),
  );
  await walk("DynamoDB: the acquire after setResource", acquire);
  await limiter.close();
}

async function onEmbedded(walk, store, address) {
  const { RateLimiter } = await compiled("index.js");
  const limiter = await RateLimiter.open(address);
  await limiter.repository.limits.setSystem(LIMITS);
  await walk(`${store}: warm acquire and commit`, await warmAcquire(limiter));
  let entities = 0;
  const cold = async () => {
    entities += 1;
    const lease = await limiter.acquire({ ...REQUEST, entityId: `cold-${entities}` });
    await lease.commit();
  };
  await times(5, cold);
  await walk(`${store}: cold acquire and commit`, cold);
  const adjust = async () => {
    const lease = await limiter.acquire(REQUEST);
    lease.adjust({ tpm: 5 });
    await lease.commit();
  };
  await times(WARM_UPS, adjust);
  await walk(`${store}: acquire, adjust and commit`, adjust);
  await limiter.close();
}

async function throughExpress(walk) {
  const { rateLimit } = await compiled("limiter/http/express.js");
  const limit = rateLimit({ limits: ["rpm:1000000"] });
  const server = await listening((request, response) =>
    limit(request, response, () => response.end("hello")),
  );
  const call = () => ask(server.url, { method: "GET" });
  await times(20, call);
  await walk("express: a request, on memory", call);
  server.close();
}

async function throughGateway(walk) {
  const { RateLimiter } = await compiled("index.js");
  const { Gateway } = await compiled("gateway/gateway.js");
  const { checkUpstream } = await compiled("gateway/upstreams.js");
  const usage = { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 };
  const completion = { id: "1", choices: [{ message: { content: "hello" } }], usage };
  const provider = await listening((request, response) => {
    request.resume().on("end", () => {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify(completion));
    });
  });
  const limiter = await RateLimiter.open("memory:");
  await limiter.repository.limits.setSystem(["rpm:100000", "tpm:10000000"]);
  const gateway = await Gateway.start({
    limiter,
    upstreams: [checkUpstream({ url: new URL("v1", provider.url).href, models: ["*"] }, {}, true)],
    host: "127.0.0.1",
    port: 0,
    isOpen: true,
    maxWaitSeconds: 0,
    bodyBytesMax: 1_000_000,
    timeoutMs: 10_000,
    unknownModels: "other",
    allowPaths: [],
    background: "refuse",
    readOnMax: 10,
    tell: () => {},
  });
  const headers = { authorization: "Bearer key", "content-type": "application/json" };
  const body = JSON.stringify({ model: "gpt-4", messages: [{ role: "user", content: "hello" }] });
  const call = () =>
    ask(new URL("/v1/chat/completions", gateway.url), { method: "POST", headers }, body);
  await times(10, call);
  await walk("gateway: a call, on memory", call);
  await gateway.stop(Promise.resolve());
  provider.close();
  await limiter.close();
}

async function throughAggregator(walk, endpoint) {
  const { createHandler } = await compiled("aws/aggregator/lambda.js");
  const { splitterOver } = await compiled("aws/aggregator/splitter.js");
  const { DynamoItemStore } = await compiled("limiter/storage/dynamodb/item-store.js");
  const store = new DynamoItemStore({ table: "walk", endpoint, region: "us-east-1" });
  const [clock, log] = [Date.now, () => {}];
  const splitter = splitterOver({ store, clock, log });
  const handler = createHandler({ table: "walk", store, clock, log, splitter });
  let sequence = 100;
  const record = async () => {
    sequence += 1;
    const { batchItemFailures } = await handler({ Records: [recordOf(sequence)] });
    if (batchItemFailures.length > 0) throw new Error("The aggregator failed on the record.");
  };
  await times(5, record);
  await walk("aggregator: a record of the stream", record);
  await store.close();
}

/** Returns the record of a consume of one token. */
function recordOf(sequence) {
  const Keys = { PK: { S: "abc/BUCKET#user#api#0" }, SK: { S: "#STATE" } };
  return {
    eventID: String(sequence),
    eventName: "MODIFY",
    dynamodb: {
      ApproximateCreationDateTime: Math.floor(Date.now() / 1000),
      SequenceNumber: String(sequence).padStart(21, "0"),
      Keys,
      OldImage: { ...Keys, ...bucketImage(sequence - 1) },
      NewImage: { ...Keys, ...bucketImage(sequence) },
    },
  };
}

function bucketImage(consumed) {
  const numbers = {
    rf: Date.now(),
    shard_count: 1,
    b_rpm_tk: 999_000,
    b_rpm_cp: 1_000_000,
    b_rpm_ra: 1_000_000,
    b_rpm_rp: 60_000,
    b_rpm_tc: 1000 * consumed,
    ac: consumed,
    cv: 1,
  };
  return {
    entity_id: { S: "user" },
    resource: { S: "api" },
    cascade: { BOOL: false },
    cs: { S: "system" },
    ...Object.fromEntries(Object.entries(numbers).map(([name, N]) => [name, { N: String(N) }])),
  };
}

async function times(count, work) {
  for (let left = count; left > 0; left -= 1) await work();
}

/** Starts a server on a free port. */
async function listening(handle) {
  const server = createServer(handle);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { url: `http://127.0.0.1:${server.address().port}`, close: () => server.close() };
}

/** Sends a request over a connection of its own and reads the response. */
async function ask(url, options, body) {
  const sent = httpRequest(url, { ...options, agent: false });
  sent.end(body);
  const [response] = await once(sent, "response");
  if (response.statusCode !== 200) throw new Error(`${url} answered ${response.statusCode}.`);
  response.resume();
  await once(response, "end");
  await pause(REST_MS);
}

function sum(files, field) {
  return files.reduce((total, file) => total + file[field], 0);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.env.AWS_ACCESS_KEY_ID = "local";
  process.env.AWS_SECRET_ACCESS_KEY = "local";
  const walks = (await measureAll()).map(({ name, files }) => ({
    name,
    files: files.length,
    functions: sum(files, "functions"),
    calls: sum(files, "calls"),
    paths: files.map(({ path }) => path),
  }));
  if (process.argv.includes("--json")) console.log(JSON.stringify(walks));
  else {
    for (const { name, files, functions, calls } of walks) {
      console.log(`${name}: ${files} files, ${functions} functions, ${calls} calls`);
    }
  }
  // Idle connections would keep the process for some seconds.
  process.exit();
}
