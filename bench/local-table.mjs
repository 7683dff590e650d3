/** A table on local DynamoDB, whichever library works on it. */

import { DynamoDBClient, UpdateTableCommand } from "@aws-sdk/client-dynamodb";
import { keys } from "./support.mjs";

const LOCAL = {
  region: "us-east-1",
  credentials: { accessKeyId: "local", secretAccessKey: "local" },
};

/** With enough sockets for all that are in flight: fifty are its default. */
export function sdkOptions(endpoint) {
  const requestHandler = { httpAgent: { keepAlive: true, maxSockets: 128 } };
  return { ...LOCAL, endpoint, requestHandler };
}

/**
 * Nobody reads the feed of changes here. The engine, unlike DynamoDB, looks through all of it with
 * every write, and would be twice as slow after a few thousand, for everybody who uses the table.
 */
export async function withoutStream(endpoint, TableName) {
  const client = new DynamoDBClient(sdkOptions(endpoint));
  const StreamSpecification = { StreamEnabled: false };
  await client.send(new UpdateTableCommand({ TableName, StreamSpecification }));
  client.destroy();
}

/** 64 entities that cascade to one of 16 parents each. */
export async function makeFamilies(root) {
  for (let parent = 0; parent < 16; parent += 1) {
    await root.entities.create({ id: `parent-${parent}` });
  }
  const families = keys(64).map((child, at) => ({ child, parent: `parent-${at % 16}` }));
  for (const { child, parent } of families) {
    await root.entities.create({ id: child, parentId: parent, cascade: true });
  }
  return families;
}
