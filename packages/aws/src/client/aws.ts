/** Requests to AWS. The SDK of a service is loaded when its first request is sent. */

import { defined } from "@zae-limiter/limiter/base/defined.ts";
import { entryOf } from "@zae-limiter/limiter/base/entry.ts";
import { isLocalEndpoint } from "@zae-limiter/limiter/base/loopback.ts";
import { systemTimer, type Timer } from "@zae-limiter/limiter/base/time.ts";
import { environment } from "@zae-limiter/limiter/repository/environment.ts";
import { LOCAL_ENGINE } from "@zae-limiter/limiter/storage/dynamodb/connection.ts";
import type { ActionName, Input, Output, ServiceName } from "./aws-actions.ts";
import { explainAwsError } from "./aws-failure.ts";

/** Endpoint, region and credentials. What is left out is resolved as every AWS tool does. */
export interface AwsConnection {
  /** The region; the one of the environment when absent. */
  readonly region?: string | undefined;
  /** The address of a local server or of a private endpoint. */
  readonly endpoint?: string | undefined;
  /** Credentials, or a provider of them, as the AWS SDK takes them. */
  readonly credentials?: unknown;
  /** A request handler of the AWS SDK. */
  readonly requestHandler?: object | undefined;
  /** The most attempts of one request. */
  readonly maxAttempts?: number | undefined;
}

/** AWS, as the rest of this folder sees it. */
export interface Aws {
  send<Name extends ActionName>(action: Name, input: Input<Name>): Promise<Output<Name>>;
  /** Returns the region as the SDK has resolved it. */
  region(): Promise<string>;
  /** This client without the stop signal, for cleaning up. */
  readonly unstoppable: Aws;
  close(): void;
}

interface Client extends Repeating {
  send(command: unknown, options: { readonly abortSignal?: AbortSignal }): Promise<unknown>;
  destroy(): void;
  readonly config: { readonly region: () => Promise<string> };
}

interface Service {
  readonly client: Client;
  readonly commands: Readonly<Record<string, new (input: unknown) => unknown>>;
}

type Configured = new (config: object) => Client;

/** CloudFormation throttles frequent calls; the SDK waits longer after each attempt. */
const ATTEMPTS_MAX = 8;
/** A local DynamoDB does not throttle: it runs, or it does not. */
const ATTEMPTS_MAX_LOCALLY = 2;
/** A person waits, so a server that does not accept within this time counts as unreachable. */
const CONNECT_TIMEOUT_MS = 5000;
const REQUEST_TIMEOUT_MS = 60_000;

/** Calls that only read: a stop need not wait for their answer. */
const LOOKS = /:(Describe|Get|List)/;

/**
 * Connects to AWS. `signal` ends requests that only read, at once and with its reason. A request
 * that changes something is always finished, and so is every request of `unstoppable`.
 */
export function connectAws(connection: AwsConnection, signal?: AbortSignal): Aws {
  const services = new Map<ServiceName, Promise<Service>>();
  const endpoint = connection.endpoint ?? environment.awsEndpoint();
  const serviceOf = (name: ServiceName): Promise<Service> =>
    entryOf(services, name, () => loadService(name, connection));
  const over = (end: AbortSignal | undefined): Aws => ({
    send: async <Name extends ActionName>(action: Name, input: Input<Name>) => {
      const [service, operation] = action.split(":") as [ServiceName, string];
      const stop = LOOKS.test(action) ? end : undefined;
      stop?.throwIfAborted();
      try {
        const { client, commands } = await serviceOf(service);
        const Command = commands[`${operation}Command`] as new (input: unknown) => unknown;
        return (await stoppably(stop, (abortSignal) =>
          client.send(new Command(input), defined({ abortSignal })),
        )) as Output<Name>;
      } catch (error) {
        stop?.throwIfAborted();
        throw explainAwsError(error, action, endpoint);
      }
    },
    region: async () => {
      try {
        return await (await serviceOf("cloudformation")).client.config.region();
      } catch (error) {
        throw explainAwsError(error, "cloudformation:DescribeStacks", endpoint);
      }
    },
    close: () => {
      // A client that could not be created needs no closing, and was reported where it was used.
      for (const service of services.values()) {
        service.then(
          ({ client }) => client.destroy(),
          () => undefined,
        );
      }
    },
    get unstoppable() {
      return over(undefined);
    },
  });
  return over(signal);
}

/** Asks for all pages of an answer, one after the other. */
export async function* pagesOf<Name extends ActionName>(
  aws: Aws,
  action: Output<Name> extends { NextToken?: string | undefined } ? Name : never,
  input: Input<Name>,
): AsyncGenerator<Output<Name>> {
  let NextToken: string | undefined;
  do {
    const next = { ...(input as object), ...defined({ NextToken }) };
    const page = await aws.send<Name>(action, next as Input<Name>);
    yield page;
    ({ NextToken } = page as { NextToken?: string });
  } while (NextToken !== undefined);
}

/** Runs a request with its own signal: the SDK keeps listening to each, and there are many. */
async function stoppably<Result>(
  stop: AbortSignal | undefined,
  work: (signal: AbortSignal | undefined) => Promise<Result>,
): Promise<Result> {
  if (stop === undefined) return work(undefined);
  const own = new AbortController();
  const abort = () => own.abort(stop.reason);
  stop.addEventListener("abort", abort, { once: true });
  try {
    return await work(own.signal);
  } finally {
    stop.removeEventListener("abort", abort);
  }
}

async function loadService(name: ServiceName, connection: AwsConnection): Promise<Service> {
  const [Client, commands, more] = await loadSdk(name);
  const { endpoint, region, credentials, requestHandler, maxAttempts } = connection;
  const client = new Client({
    ...(isLocalEndpoint(endpoint) ? LOCAL_ENGINE : {}),
    ...defined({ endpoint, region, credentials }),
    ...more,
    maxAttempts: maxAttempts ?? (isLocalEndpoint(endpoint) ? ATTEMPTS_MAX_LOCALLY : ATTEMPTS_MAX),
    requestHandler: requestHandler ?? {
      connectionTimeout: CONNECT_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
    },
  });
  repeatRefusedOnce(client, systemTimer);
  return { client, commands: commands as Service["commands"] };
}

async function loadSdk(name: ServiceName): Promise<[Configured, object, object?]> {
  switch (name) {
    case "cloudformation": {
      const { CloudFormationClient, ...commands } = await import("./sdk/cloudformation.ts");
      return [CloudFormationClient as unknown as Configured, commands];
    }
    case "dynamodb": {
      const { DynamoDBClient, ...commands } = await import("./sdk/dynamodb.ts");
      return [DynamoDBClient as unknown as Configured, commands];
    }
    case "lambda": {
      const { LambdaClient, ...commands } = await import("./sdk/lambda.ts");
      return [LambdaClient as unknown as Configured, commands];
    }
    case "s3": {
      const { S3Client, ...commands } = await import("./sdk/s3.ts");
      // A local S3 server has its buckets as paths of its address, not as hosts.
      return [S3Client as unknown as Configured, commands, { forcePathStyle: true }];
    }
    case "tag": {
      const { ResourceGroupsTaggingAPIClient, ...commands } = await import("./sdk/tagging.ts");
      return [ResourceGroupsTaggingAPIClient as unknown as Configured, commands];
    }
  }
}

/** Time in which a server that restarts is back, in milliseconds. */
const PAUSE_MS = 200;

/**
 * The connection was refused twice. It has no `code` and no `cause`, because the SDK would repeat
 * the request for either.
 */
class RefusedConnection extends Error {
  override readonly name = "RefusedConnection";
}

/** The part of a client of the SDK that this file needs. */
interface Repeating {
  readonly middlewareStack: {
    add(
      middleware: (next: Handler) => Handler,
      place: { readonly step: "deserialize"; readonly priority: "low"; readonly name: string },
    ): void;
  };
}

type Handler = (args: never) => Promise<unknown>;

/**
 * Repeats a request once when its connection is refused, then throws `RefusedConnection`: the SDK
 * would repeat it for many seconds, while the user sees nothing.
 */
function repeatRefusedOnce(client: Repeating, timer: Timer): void {
  client.middlewareStack.add(
    (next) => async (args) => {
      try {
        return await next(args);
      } catch (error) {
        if (!isRefused(error)) throw error;
      }
      await timer.sleep(PAUSE_MS);
      try {
        return await next(args);
      } catch (error) {
        throw isRefused(error) ? new RefusedConnection((error as Error).message) : error;
      }
    },
    { step: "deserialize", priority: "low", name: "zaeLimiterRefused" },
  );
}

function isRefused(error: unknown): boolean {
  const { code, errors = [] } = (error ?? {}) as { code?: unknown; errors?: readonly unknown[] };
  return code === "ECONNREFUSED" || (errors.length > 0 && errors.every(isRefused));
}
