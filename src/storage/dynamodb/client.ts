/** The AWS SDK, loaded on first use, so that those who never use DynamoDB never pay for it. */

import type { DynamoDBClientConfig } from "@aws-sdk/client-dynamodb";
import type { Clock } from "../../domain/clock.ts";
import { type Input, type OperationName, type Output, STREAM_OPERATIONS } from "./operations.ts";
import { needsRepair, repairItems } from "./raw-items.ts";

/** Where DynamoDB is and who asks. What is left out is resolved as every AWS tool does. */
export interface DynamoConnection {
  readonly region?: string | undefined;
  readonly endpoint?: string | undefined;
  readonly credentials?: DynamoDBClientConfig["credentials"];
  readonly requestHandler?: DynamoDBClientConfig["requestHandler"];
}

/** Connecting takes one round trip; a machine that needs longer than this is not there. */
const CONNECT_TIMEOUT_MS = 1000;
/** The `Date` header has whole seconds: on average it is half a second behind. */
const DATE_RESOLUTION_MS = 1000;
const LOOPBACK_HOSTS: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);

interface SdkClient {
  send(command: unknown, options: { abortSignal: AbortSignal }): Promise<unknown>;
  destroy(): void;
}

interface HttpResponse {
  readonly headers?: Readonly<Record<string, string>>;
  body: unknown;
}

interface Service {
  readonly client: SdkClient;
  readonly commands: Readonly<Record<string, new (input: unknown) => unknown>>;
}

export class DynamoClient {
  readonly #connection: DynamoConnection;
  readonly #timeoutMs: number;
  readonly #clock: Clock;
  #data: Promise<Service> | undefined;
  #streams: Promise<Service> | undefined;
  #serverDateMs: number | undefined;
  #serverDateSkewMs: number | undefined;
  /** Inputs of requests that were handed to the network. */
  readonly #sent = new WeakSet<object>();
  /** Answers, by their input, whose items the SDK would spoil. */
  readonly #texts = new WeakMap<object, string>();

  constructor(connection: DynamoConnection, timeoutMs: number, clock: Clock) {
    this.#connection = connection;
    this.#timeoutMs = timeoutMs;
    this.#clock = clock;
  }

  /** The server's time in its last answer, in whole seconds. */
  get serverDateMs(): number | undefined {
    return this.#serverDateMs;
  }

  /** How far the server's clock is ahead of ours, as the last answer showed. */
  get serverDateSkewMs(): number | undefined {
    return this.#serverDateSkewMs;
  }

  /** Loads the code for an operation. Loading is local work and no part of any deadline. */
  async load(operation: OperationName): Promise<void> {
    await this.#serviceOf(operation);
  }

  /** One request, one answer; nothing is repeated. */
  async send<Name extends OperationName>(
    operation: Name,
    input: Input<Name>,
    abortSignal: AbortSignal,
  ): Promise<Output<Name>> {
    this.#sent.delete(input);
    const { client, commands } = await this.#serviceOf(operation);
    const Command = commands[`${operation}Command`] as new (input: unknown) => unknown;
    try {
      const output = await client.send(new Command(input), { abortSignal });
      this.#repair(input, output);
      return output as Output<Name>;
    } catch (error) {
      this.#repair(input, error);
      throw error;
    }
  }

  /** False proves that not a byte of the request with this input left the process. */
  wasSent(input: object): boolean {
    return this.#sent.has(input);
  }

  async close(): Promise<void> {
    for (const service of await Promise.all([this.#data, this.#streams])) service?.client.destroy();
  }

  #serviceOf(operation: OperationName): Promise<Service> {
    if (STREAM_OPERATIONS.has(operation)) {
      this.#streams ??= this.#loadStreams();
      return this.#streams;
    }
    this.#data ??= this.#loadData();
    return this.#data;
  }

  async #loadData(): Promise<Service> {
    const sdk = await import("@aws-sdk/client-dynamodb");
    const client = new sdk.DynamoDBClient(clientConfig(this.#connection, this.#timeoutMs));
    client.middlewareStack.add((next) => (args) => this.#watch(next, args), INNERMOST);
    return { client: client as unknown as SdkClient, commands: sdk as never };
  }

  async #loadStreams(): Promise<Service> {
    const sdk = await import("@aws-sdk/client-dynamodb-streams");
    const client = new sdk.DynamoDBStreamsClient(clientConfig(this.#connection, this.#timeoutMs));
    client.middlewareStack.add((next) => (args) => this.#watch(next, args), INNERMOST);
    return { client: client as unknown as SdkClient, commands: sdk as never };
  }

  /** Sits next to the network: sees when a request goes out and what time the answer shows. */
  async #watch<Args extends { input: object }, Result extends { response: unknown }>(
    next: (args: Args) => Promise<Result>,
    args: Args,
  ): Promise<Result> {
    this.#sent.add(args.input);
    const result = await next(args);
    const response = result.response as HttpResponse;
    this.#readDate(response.headers?.date);
    // The SDK takes a body that was read already.
    const body = await bytesOf(response.body);
    response.body = body;
    if (needsRepair(body)) this.#texts.set(args.input, body.toString());
    return result;
  }

  #readDate(date: string | undefined): void {
    const serverMs = Date.parse(date ?? "");
    if (Number.isNaN(serverMs)) return;
    this.#serverDateMs = serverMs;
    this.#serverDateSkewMs = serverMs + DATE_RESOLUTION_MS / 2 - this.#clock();
  }

  #repair(input: object, answer: unknown): void {
    const text = this.#texts.get(input);
    if (text === undefined) return;
    this.#texts.delete(input);
    repairItems(answer, text);
  }
}

async function bytesOf(body: unknown): Promise<Buffer> {
  if (body instanceof Uint8Array) return Buffer.from(body);
  const chunks: Uint8Array[] = [];
  for await (const chunk of (body ?? []) as AsyncIterable<Uint8Array>) chunks.push(chunk);
  return Buffer.concat(chunks);
}

const INNERMOST = { step: "deserialize", priority: "low", name: "zaeLimiterWatch" } as const;

function clientConfig(connection: DynamoConnection, timeoutMs: number): DynamoDBClientConfig {
  return {
    ...(isLoopback(connection.endpoint) ? LOCAL_ENGINE : {}),
    ...present("endpoint", connection.endpoint),
    ...present("region", connection.region),
    ...present("credentials", connection.credentials),
    // The SDK repeats requests whose outcome is unknown. We decide that ourselves.
    maxAttempts: 1,
    requestHandler: connection.requestHandler ?? {
      connectionTimeout: Math.min(CONNECT_TIMEOUT_MS, Math.ceil(timeoutMs / 2)),
    },
  };
}

/**
 * An engine on this machine checks no signature, yet the SDK refuses to send anything without a
 * region and credentials. Fixed ones save every developer the same setup, and keep real
 * credentials away from whatever listens there.
 */
const LOCAL_ENGINE = {
  region: "us-east-1",
  credentials: { accessKeyId: "local", secretAccessKey: "local" },
} as const;

function isLoopback(endpoint: string | undefined): boolean {
  return (
    endpoint !== undefined &&
    URL.canParse(endpoint) &&
    LOOPBACK_HOSTS.has(new URL(endpoint).hostname)
  );
}

function present<Name extends string, Value>(
  name: Name,
  value: Value | undefined,
): { [name in Name]?: Value } {
  return value === undefined ? {} : ({ [name]: value } as { [name in Name]: Value });
}
