/** DynamoDB, by its quick local engine: the engine takes its share of the machine as well. */

import {
  DynamoDB,
  DynamoDBClient,
  TransactWriteItemsCommand,
  UpdateItemCommand,
} from "@aws-sdk/client-dynamodb";
import { RateLimiterDynamo } from "rate-limiter-flexible";
import { RateLimiter, Repository } from "../dist/index.js";
import { makeFamilies, sdkOptions, withoutStream } from "../local-table.mjs";
import { duel, timed } from "../measure.mjs";
import { keys, startDynoxide, startServer, taking } from "../support.mjs";

const IN_FLIGHT = 64;
const KEYS = 256;
const AMPLE = ["rpm:1000000/sec", "tpm:1000000000/sec"];
/** More than one bucket can ever be asked for, and within what plain numbers hold. */
const HOT = ["rpm:100000000/sec", "tpm:100000000/sec"];

/** Does work with a fresh table on local DynamoDB. */
export async function withTable(work) {
  const engine = await startDynoxide();
  const table = "bench";
  const root = await Repository.createTable(table, {
    endpoint: engine.endpoint,
    timeoutMs: 20_000,
  });
  await withoutStream(engine.endpoint, table);
  await root.limits.setSystem(AMPLE);
  try {
    const { endpoint, cpuUs: engineUs } = engine;
    return await work({ endpoint, table, root, duelOptions: { inFlight: IN_FLIGHT, engineUs } });
  } finally {
    await root.close();
    await engine.stop();
  }
}

export async function limiterAt(table, endpoint, options = {}) {
  return RateLimiter.open(`dynamodb://${table}`, { endpoint, timeoutMs: 20_000, ...options });
}

/** Counts the requests of an acquire to the store, with `inFlight` acquires at a time. */
async function costs(table, endpoint, names, count, inFlight = 1) {
  const calls = [];
  const limiter = await limiterAt(table, endpoint, { onCall: (call) => calls.push(call) });
  const ours = taking(limiter, names);
  await timed(ours, Math.max(names.length, inFlight), inFlight);
  calls.length = 0;
  await timed(ours, count, inFlight);
  await limiter.close();
  const sum = (field) => calls.reduce((total, call) => total + call[field], 0) / count;
  return {
    callsPerOp: calls.length / count,
    wcuPerOp: sum("writeUnits"),
    rcuPerOp: sum("readUnits"),
  };
}

/** Makes a similar write by hand: two counters of one item under a condition. */
function bareUpdate(client, table, names) {
  let at = 0;
  return {
    loop: async (count) => {
      for (let left = count; left > 0; left -= 1) {
        at = (at + 1) % names.length;
        await client.send(new UpdateItemCommand(updateOf(table, `bare-${names[at]}`)));
      }
    },
  };
}

function updateOf(TableName, id) {
  return {
    TableName,
    Key: { PK: { S: id }, SK: { S: "#STATE" } },
    UpdateExpression: "ADD #a :a, #b :b, #c :a, #d :b",
    ConditionExpression: "attribute_not_exists(#a) OR (#a >= :least AND #b >= :least)",
    ExpressionAttributeNames: { "#a": "rpm", "#b": "tpm", "#c": "rpm_total", "#d": "tpm_total" },
    ExpressionAttributeValues: { ":a": { N: "1" }, ":b": { N: "500" }, ":least": { N: "0" } },
    ReturnValues: "ALL_NEW",
  };
}

async function ddbRlf(pace) {
  return withTable(async ({ endpoint, table, duelOptions }) => {
    const names = keys(KEYS);
    const limiter = await limiterAt(table, endpoint);
    const storeClient = new DynamoDB(sdkOptions(endpoint));
    const rival = await new Promise((resolve, reject) => {
      const options = { storeClient, tableName: "rival", points: 1_000_000_000, duration: 3600 };
      const made = new RateLimiterDynamo(options, (error) =>
        error === undefined
          ? resolve(made)
          : reject(new Error("The rival did not start", { cause: error })),
      );
    });
    let at = 0;
    const theirs = {
      loop: async (count) => {
        for (let left = count; left > 0; left -= 1) {
          at = (at + 1) % names.length;
          await rival.consume(names[at]);
        }
      },
    };
    const results = await duel([taking(limiter, names), theirs], pace, duelOptions);
    await limiter.close();
    storeClient.destroy();
    return [{ ...results[0], ...(await costs(table, endpoint, names, 512)) }, results[1]];
  });
}

async function ddbRaw(pace) {
  return withTable(async ({ endpoint, table, duelOptions }) => {
    const names = keys(KEYS);
    const limiter = await limiterAt(table, endpoint);
    const client = new DynamoDBClient(sdkOptions(endpoint));
    const contenders = [taking(limiter, names), bareUpdate(client, table, names)];
    const results = await duel(contenders, pace, duelOptions);
    await limiter.close();
    client.destroy();
    return results;
  });
}

/** Measures one bucket for all: calls during a write share the next one. */
async function ddbHot(pace) {
  return withTable(async ({ endpoint, table, root, duelOptions }) => {
    await root.limits.setSystem(HOT);
    const names = ["user"];
    const limiter = await limiterAt(table, endpoint);
    const client = new DynamoDBClient(sdkOptions(endpoint));
    const contenders = [taking(limiter, names), bareUpdate(client, table, names)];
    const results = await duel(contenders, pace, duelOptions);
    await limiter.close();
    client.destroy();
    const alone = await costs(table, endpoint, names, 512);
    const together = await costs(table, endpoint, names, 6400, IN_FLIGHT);
    const measured = { callsAlone: alone.callsPerOp, callsPerOp: together.callsPerOp };
    return [{ ...results[0], ...measured }, results[1]];
  });
}

async function ddbNull(pace) {
  return withTable(async ({ endpoint, table }) => {
    const server = await startServer("./children/null-server.mjs", [endpoint]);
    const names = ["user"];
    const limiter = await limiterAt(table, server.endpoint);
    const ours = taking(limiter, names);
    // The first creates the bucket, the second is the update that all others are answered with.
    await ours.loop(3);
    const client = new DynamoDBClient(sdkOptions(server.endpoint));
    const contenders = [ours, bareUpdate(client, table, names)];
    const results = await duel(contenders, pace, { inFlight: IN_FLIGHT });
    await limiter.close();
    client.destroy();
    await server.stop();
    return results;
  });
}

async function ddbCasc(pace) {
  return withTable(async ({ endpoint, table, root, duelOptions }) => {
    const names = (await makeFamilies(root)).map(({ child }) => child);
    const limiter = await limiterAt(table, endpoint);
    const client = new DynamoDBClient(sdkOptions(endpoint));
    let next = 0;
    const bare = {
      loop: async (count) => {
        for (let left = count; left > 0; left -= 1) {
          next = (next + 1) % names.length;
          const ids = [`bare-${names[next]}`, `bare-parent-${next % 16}`];
          const TransactItems = ids.map((id) => {
            const { ReturnValues: _, ...Update } = updateOf(table, id);
            return { Update };
          });
          await client.send(new TransactWriteItemsCommand({ TransactItems })).catch((error) => {
            // Two at a time on one parent: one of them is cancelled, and counts as done.
            if (error.name !== "TransactionCanceledException") throw error;
          });
        }
      },
    };
    const results = await duel([taking(limiter, names), bare], pace, duelOptions);
    await limiter.close();
    client.destroy();
    const siblings = names.filter((_, at) => at % 16 === 0);
    const measured = {
      callsOverMany: (await costs(table, endpoint, names, 6400, IN_FLIGHT)).callsPerOp,
      callsOverOne: (await costs(table, endpoint, siblings, 6400, IN_FLIGHT)).callsPerOp,
    };
    return [{ ...results[0], ...measured }, results[1]];
  });
}

async function ddbDeny(pace) {
  return withTable(async ({ endpoint, table, root }) => {
    await root.limits.setSystem(["rpm:1/day"]);
    let calls = 0;
    const limiter = await limiterAt(table, endpoint, { onCall: () => (calls += 1) });
    const request = { entityId: "user", resource: "api", consume: { rpm: 1 } };
    await limiter.tryAcquire(request);
    const loop = async (count) => {
      for (let left = count; left > 0; left -= 1) {
        const decision = await limiter.tryAcquire(request);
        if (decision.granted) throw new Error("granted");
      }
    };
    const [{ perSecond, ...rest }] = await duel([{ loop }], pace);
    // A refusal is known for a second, then the store is asked once: begin right after that.
    calls = 0;
    while (calls === 0) await loop(100);
    calls = 0;
    await timed({ loop }, Math.round(perSecond / 8), 1);
    const measured = { perSecond, calls, ...rest };
    await limiter.close();
    return measured;
  });
}

/** Consumes eight of ten tokens a second, for a minute by the clock of the limiter. */
async function ddbSteady() {
  return withTable(async ({ endpoint, table, root }) => {
    await root.limits.setSystem(["rps:100/sec"]);
    const calls = [];
    let nowMs = Date.now();
    const limiter = await limiterAt(table, endpoint, {
      clock: () => nowMs,
      onCall: (call) => calls.push(call),
      configCacheTtlSeconds: 600,
    });
    const acquires = 80 * 60;
    const request = { entityId: "user", resource: "api", consume: { rps: 1 } };
    await (await limiter.acquire(request)).commit();
    // A new bucket is read once more, in case its entity was linked at the same time.
    nowMs += 5000;
    await (await limiter.acquire(request)).commit();
    calls.length = 0;
    for (let at = 0; at < acquires; at += 1) {
      nowMs += 12.5;
      await (await limiter.acquire(request)).commit();
    }
    await limiter.close();
    const sum = (field) => calls.reduce((total, call) => total + call[field], 0) / acquires;
    return {
      callsPerOp: calls.length / acquires,
      wcuPerOp: sum("writeUnits"),
      rcuPerOp: sum("readUnits"),
    };
  });
}

export const dynamodb = [
  {
    id: "ddb-rlf",
    title: "DynamoDB (dynoxide), two limits, 64 in flight, against RateLimiterDynamo.consume",
    marks: [{ of: "ratio", least: 3.5 }],
    run: ddbRlf,
  },
  {
    id: "ddb-raw",
    title: "the same against a bare SDK v3 UpdateItemCommand",
    marks: [
      { of: "ratio", least: 1.5 },
      { of: "cpuRatio", most: 0.4 },
    ],
    run: ddbRaw,
  },
  {
    id: "ddb-hot",
    title: "one bucket, 64 in flight, against a bare SDK UpdateItemCommand on one item",
    marks: [
      { of: "ratio", least: 30 },
      { of: "callsPerOp", most: 0.05 },
      { of: "callsAlone", most: 1.02 },
    ],
    run: ddbHot,
  },
  {
    id: "ddb-null",
    title: "acquire against a server with a canned answer, against the bare SDK call, 64 in flight",
    marks: [{ of: "ratio", least: 5 }],
    run: ddbNull,
  },
  {
    id: "ddb-casc",
    title: "cascade to one parent against the bare SDK TransactWriteItems of two updates",
    marks: [
      { of: "ratio", least: 0.85 },
      { of: "callsOverMany", most: 1.8 },
      { of: "callsOverOne", most: 1.1 },
    ],
    run: ddbCasc,
  },
  {
    id: "ddb-deny",
    title: "known-exhausted bucket: refusals per second, without a call",
    marks: [
      { of: "perSecond", least: 200_000 },
      { of: "calls", most: 0 },
    ],
    run: ddbDeny,
  },
  {
    id: "ddb-steady",
    title: "one bucket, one client, at 80 % of its rate for 60 virtual seconds: cost per acquire",
    marks: [
      { of: "callsPerOp", most: 1.02 },
      { of: "wcuPerOp", most: 1.02 },
      { of: "rcuPerOp", most: 0 },
    ],
    run: ddbSteady,
  },
];
