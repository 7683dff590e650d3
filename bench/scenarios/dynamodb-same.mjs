/**
 * The rows of `dynamodb.mjs` in which the bare SDK makes the very write that we make: to copies of
 * our buckets, in the same table with the same indexes, by the same expressions. What the store
 * does is then the same for both, and the difference is the client.
 */

import {
  BatchWriteItemCommand,
  DynamoDBClient,
  ScanCommand,
  TransactWriteItemsCommand,
  UpdateItemCommand,
} from "@aws-sdk/client-dynamodb";
import { makeFamilies, sdkOptions } from "../local-table.mjs";
import { duel } from "../measure.mjs";
import { keys, taking } from "../support.mjs";
import { limiterAt, withTable } from "./dynamodb.mjs";

const KEYS = 256;
const BATCH = 25;

/** Reads bucket items as they are stored, by entity. */
async function bucketsIn(client, TableName) {
  const buckets = new Map();
  let ExclusiveStartKey;
  do {
    const page = await client.send(new ScanCommand({ TableName, ExclusiveStartKey }));
    for (const item of page.Items) {
      if (item.SK.S === "#STATE") buckets.set(item.entity_id.S, item);
    }
    ExclusiveStartKey = page.LastEvaluatedKey;
  } while (ExclusiveStartKey !== undefined);
  return buckets;
}

/** Stores a copy of each bucket under another entity, with the index keys of that entity. */
async function copied(client, table, names) {
  const buckets = await bucketsIn(client, table);
  const copies = new Map();
  for (const name of names) {
    const item = Object.entries(buckets.get(name)).map(([attribute, value]) => [
      attribute,
      value.S === undefined ? value : { S: value.S.replaceAll(name, `bare-${name}`) },
    ]);
    copies.set(name, Object.fromEntries(item));
  }
  const puts = [...copies.values()].map((Item) => ({ PutRequest: { Item } }));
  for (let at = 0; at < puts.length; at += BATCH) {
    const RequestItems = { [table]: puts.slice(at, at + BATCH) };
    await client.send(new BatchWriteItemCommand({ RequestItems }));
  }
  return copies;
}

/** Builds what we send for an acquire of two limits that seem full: expressions, names, values. */
function updateOf(TableName, { PK, SK, rf, cv, b_rpm_tk, b_tpm_tk }) {
  return {
    TableName,
    Key: { PK, SK },
    UpdateExpression: "SET #n0 = :v0, #n1 = :v1 ADD #n2 :v2, #n3 :v3, ac :one, wm :one",
    ConditionExpression:
      "#n0 >= :v4 AND #n1 >= :v5 AND rf = :v6 AND attribute_not_exists(rn) AND cv = :v7 AND " +
      "shard_count = :one AND (attribute_not_exists(#n4) OR #n4 > :one) AND " +
      "attribute_not_exists(disabled)",
    ExpressionAttributeNames: {
      ...{ "#n0": "b_rpm_tk", "#n1": "b_tpm_tk", "#n2": "b_rpm_tc", "#n3": "b_tpm_tc" },
      "#n4": "ttl",
    },
    ExpressionAttributeValues: {
      ...{ ":v0": b_rpm_tk, ":v1": b_tpm_tk, ":v2": { N: "1000" }, ":v3": { N: "500000" } },
      ...{ ":v4": b_rpm_tk, ":v5": b_tpm_tk, ":v6": rf, ":v7": cv, ":one": { N: "1" } },
    },
    ReturnValuesOnConditionCheckFailure: "ALL_OLD",
  };
}

async function ddbRawSame(pace) {
  return withTable(async ({ endpoint, table, duelOptions }) => {
    const names = keys(KEYS);
    const limiter = await limiterAt(table, endpoint);
    const ours = taking(limiter, names);
    await ours.loop(names.length);
    const client = new DynamoDBClient(sdkOptions(endpoint));
    const updates = [...(await copied(client, table, names)).values()].map((item) => ({
      ...updateOf(table, item),
      ReturnValues: "ALL_NEW",
    }));
    let at = 0;
    const bare = {
      loop: async (count) => {
        for (let left = count; left > 0; left -= 1) {
          at = (at + 1) % updates.length;
          await client.send(new UpdateItemCommand(updates[at]));
        }
      },
    };
    const results = await duel([ours, bare], pace, duelOptions);
    await limiter.close();
    client.destroy();
    return results;
  });
}

async function ddbCascSame(pace) {
  return withTable(async ({ endpoint, table, root, duelOptions }) => {
    const families = await makeFamilies(root);
    const names = families.map(({ child }) => child);
    const limiter = await limiterAt(table, endpoint);
    const ours = taking(limiter, names);
    await ours.loop(names.length);
    const client = new DynamoDBClient(sdkOptions(endpoint));
    const parents = new Set(families.map(({ parent }) => parent));
    const copies = await copied(client, table, [...names, ...parents]);
    const transactions = families.map(({ child, parent }) => ({
      TransactItems: [child, parent].map((id) => ({ Update: updateOf(table, copies.get(id)) })),
    }));
    let at = 0;
    const bare = {
      loop: async (count) => {
        for (let left = count; left > 0; left -= 1) {
          at = (at + 1) % transactions.length;
          await client.send(new TransactWriteItemsCommand(transactions[at])).catch((error) => {
            // Two at a time on one parent: one of them is cancelled, and counts as done.
            if (error.name !== "TransactionCanceledException") throw error;
          });
        }
      },
    };
    const results = await duel([ours, bare], pace, duelOptions);
    await limiter.close();
    client.destroy();
    return results;
  });
}

export const dynamodbSame = [
  {
    id: "ddb-raw-same",
    title:
      "ddb-raw where the bare SDK makes our write, to copies of our buckets with their indexes",
    marks: [
      { of: "ratio", least: 1 },
      { of: "cpuRatio", most: 0.6 },
    ],
    run: ddbRawSame,
  },
  {
    id: "ddb-casc-same",
    title: "ddb-casc where the bare SDK makes our two writes in a transaction, to copies",
    marks: [{ of: "ratio", least: 0.85 }],
    run: ddbCascSame,
  },
];
