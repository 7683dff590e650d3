/** The connection to DynamoDB: endpoint, credentials and transport. */

import type { DynamoDBClientConfig } from "@aws-sdk/client-dynamodb";
import { defined } from "../../base/defined.ts";
import { isLocalEndpoint } from "../../base/loopback.ts";

/** Requests for data go over a transport of our own, or like all others through the AWS SDK. */
export const TRANSPORTS = ["lean", "sdk"] as const;
type TransportName = (typeof TRANSPORTS)[number];

/** Settings of a connection; absent ones are resolved as every AWS tool does. */
export interface DynamoConnection {
  readonly region?: string | undefined;
  readonly endpoint?: string | undefined;
  readonly credentials?: DynamoDBClientConfig["credentials"];
  /** A request handler of the SDK. With one, all requests go through the SDK. */
  readonly requestHandler?: DynamoDBClientConfig["requestHandler"];
  /** `lean` when absent. */
  readonly transport?: TransportName | undefined;
}

/** Connecting takes one round trip; a host that needs longer than this is not reachable. */
const CONNECT_TIMEOUT_MS = 1000;

/** Returns how much of a call's time a connection may take. */
export function connectTimeoutMs(timeoutMs: number): number {
  return Math.min(CONNECT_TIMEOUT_MS, Math.ceil(timeoutMs / 2));
}

/** Returns the settings of a client of the SDK. */
export function clientConfig(
  connection: DynamoConnection,
  timeoutMs: number,
): DynamoDBClientConfig {
  const { endpoint, region, credentials } = connection;
  return {
    ...(isLocalEndpoint(endpoint) ? LOCAL_ENGINE : {}),
    ...defined({ endpoint, region, credentials }),
    // The SDK repeats requests whose outcome is unknown. We decide that ourselves.
    maxAttempts: 1,
    requestHandler: connection.requestHandler ?? {
      connectionTimeout: connectTimeoutMs(timeoutMs),
    },
  };
}

/**
 * A local DynamoDB checks no signature, yet the SDK refuses to send anything without a region and
 * credentials. Fixed ones save every developer the same setup, and keep real credentials away from
 * a server that could be anything.
 */
export const LOCAL_ENGINE = {
  region: "us-east-1",
  credentials: { accessKeyId: "local", secretAccessKey: "local" },
} as const;
