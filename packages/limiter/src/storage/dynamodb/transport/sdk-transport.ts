/** Sends requests through the AWS SDK, which is loaded on first use. */

import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { Clock } from "../../../base/time.ts";
import { clientConfig, type DynamoConnection } from "../connection.ts";
import { ServerDate } from "./exchange.ts";
import { type OperationName, type Output, STREAM_OPERATIONS } from "./operations.ts";
import { needsRepair, repairItems } from "./raw-items.ts";
import { inputOf, type Outgoing, SendError, type Transport, within } from "./transport.ts";

interface SdkClient {
  send(command: unknown, options: { abortSignal: AbortSignal }): Promise<unknown>;
  destroy(): void;
}

interface HttpResponse {
  readonly headers?: Readonly<Record<string, string>>;
  body: unknown;
}

type Commands = Readonly<Record<string, new (input: never) => unknown>>;

interface Service {
  readonly client: SdkClient;
  readonly commands: Commands;
}

export class SdkTransport implements Transport {
  readonly #connection: DynamoConnection;
  readonly #timeoutMs: number;
  readonly #serverDate: ServerDate;
  #data: Promise<Service> | undefined;
  #streams: Promise<Service> | undefined;
  /** Inputs of requests that were handed to the network. */
  readonly #sent = new WeakSet<object>();
  /** Texts of answers whose items the SDK would spoil, by the input of the request. */
  readonly #texts = new WeakMap<object, string>();

  constructor(connection: DynamoConnection, timeoutMs: number, clock: Clock) {
    this.#connection = connection;
    this.#timeoutMs = timeoutMs;
    this.#serverDate = new ServerDate(clock);
  }

  get serverDateMs(): number | undefined {
    return this.#serverDate.dateMs;
  }

  get serverDateSkewMs(): number | undefined {
    return this.#serverDate.skewMs;
  }

  async load(operation: OperationName): Promise<void> {
    await this.#serviceOf(operation);
  }

  /** Returns the client for data; its config has the credentials and the endpoint. */
  async dataClient(): Promise<DynamoDBClient> {
    const { client } = await this.#serviceOf("GetItem");
    return client as unknown as DynamoDBClient;
  }

  async send<Name extends OperationName>(
    operation: Name,
    request: Outgoing<Name>,
    timeoutMs: number,
  ): Promise<Output<Name>> {
    // A copy, so that an input that is sent again is known by this attempt only.
    const input = { ...inputOf(request) };
    const { client, commands } = await this.#serviceOf(operation);
    const Command = commands[`${operation}Command`] as new (input: unknown) => unknown;
    try {
      const output = await within(timeoutMs, (abortSignal) =>
        client.send(new Command(input), { abortSignal }),
      );
      this.#repair(input, output);
      return output as Output<Name>;
    } catch (error) {
      this.#repair(input, error);
      throw new SendError(error, this.#sent.has(input) ? "sent" : "prepared");
    }
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
    const { DynamoDBClient: Client, ...commands } = await import("./sdk-data.ts");
    const client = new Client(clientConfig(this.#connection, this.#timeoutMs));
    client.middlewareStack.add((next) => (args) => this.#watch(next, args), INNERMOST);
    return { client: client as unknown as SdkClient, commands };
  }

  async #loadStreams(): Promise<Service> {
    const { DynamoDBStreamsClient: Client, ...commands } = await import("./sdk-streams.ts");
    const client = new Client(clientConfig(this.#connection, this.#timeoutMs));
    client.middlewareStack.add((next) => (args) => this.#watch(next, args), INNERMOST);
    return { client: client as unknown as SdkClient, commands };
  }

  /** Notes next to the network that a request goes out, and the time that its answer shows. */
  async #watch<Args extends { input: object }, Result extends { response: unknown }>(
    next: (args: Args) => Promise<Result>,
    args: Args,
  ): Promise<Result> {
    this.#sent.add(args.input);
    const sentAtMs = this.#serverDate.now();
    const result = await next(args);
    const response = result.response as HttpResponse;
    this.#serverDate.see(response.headers?.date, sentAtMs);
    // The SDK takes a body that was read already.
    const body = await bytesOf(response.body);
    response.body = body;
    if (needsRepair(body)) this.#texts.set(args.input, body.toString());
    return result;
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
