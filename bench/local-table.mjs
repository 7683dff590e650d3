/** A table on local DynamoDB, whichever library works on it. */

import { DynamoDBClient, UpdateTableCommand } from "@aws-sdk/client-dynamodb";
import { keys } from "./support.mjs";

const LOCAL = {
  region: "us-east-1",
  credentials: { accessKeyId: "local", secretAccessKey: "local" },
};

/** Returns options of the SDK with enough sockets for all requests; its default is fifty. */
export function sdkOptions(endpoint) {
  const requestHandler = { httpAgent: { keepAlive: true, maxSockets: 128 } };
  return { ...LOCAL, endpoint, requestHandler };
}

/**
 * Turns off the feed of changes of a table. The local DynamoDB, unlike the real one, searches all of
 * the feed with every write, and would be twice as slow after a few thousand writes.
 */
export async function withoutStream(endpoint, TableName) {
  const client = new DynamoDBClient(sdkOptions(endpoint));
  const StreamSpecification = { StreamEnabled: false };
  await client.send(new UpdateTableCommand({ TableName, StreamSpecification }));
  client.destroy();
}

/** Creates 64 entities that cascade to one of 16 parents each. */
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
