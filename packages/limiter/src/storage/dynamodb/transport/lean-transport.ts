/**
 * Sends data requests without the SDK: signs them, sends them over connections that stay open, and
 * reads the answers. The SDK costs several times the CPU of everything else in an acquire. It still
 * provides credentials and endpoint, and sends all other requests.
 */

import type { Pool } from "undici";
import { type Clock, Deadline, systemTimer } from "../../../base/time.ts";
import { connectTimeoutMs, type DynamoConnection } from "../connection.ts";
import { exchange, headerOf, readAnswer, ServerDate, type ServiceError } from "./exchange.ts";
import { LEAN_OPERATIONS, type OperationName, type Output } from "./operations.ts";
import { SdkTransport } from "./sdk-transport.ts";
import type { Identities, Identity, Signer } from "./signer.ts";
import { type Outgoing, Prepared, SendError, type Transport, within } from "./transport.ts";

/** The most connections; further requests wait for one of them. */
const CONNECTIONS_MAX = 128;
/** Idle connections are closed before the server does it, perhaps while a request is on its way. */
const KEEP_ALIVE_MS = 20_000;
/** Errors for credentials that are too old: newer ones may be available. */
const STALE_CREDENTIALS: ReadonlySet<string> = new Set(["ExpiredTokenException", "ExpiredToken"]);

/** Code that is loaded on first use. */
interface Code {
  readonly Pool: typeof Pool;
  readonly signer: Signer;
  readonly identities: Identities;
}

export class LeanTransport implements Transport {
  readonly #sdk: SdkTransport;
  readonly #timeoutMs: number;
  readonly #serverDate: ServerDate;
  #loading: Promise<void> | undefined;
  #code: Code | undefined;
  #pool: Pool | undefined;
  #poolOrigin = "";
  #closed = false;

  constructor(connection: DynamoConnection, timeoutMs: number, clock: Clock) {
    this.#sdk = new SdkTransport(connection, timeoutMs, clock);
    this.#timeoutMs = timeoutMs;
    this.#serverDate = new ServerDate(clock);
  }

  get serverDateMs(): number | undefined {
    return this.#serverDate.dateMs ?? this.#sdk.serverDateMs;
  }

  get serverDateSkewMs(): number | undefined {
    return this.#serverDate.skewMs ?? this.#sdk.serverDateSkewMs;
  }

  load(operation: OperationName): Promise<void> | undefined {
    if (!LEAN_OPERATIONS.has(operation)) return this.#sdk.load(operation);
    if (this.#code !== undefined) return undefined;
    this.#loading ??= this.#load();
    return this.#loading;
  }

  /**
   * Sends a request. Not async where credentials are known: its frame would cost more than the
   * rest.
   */
  send<Name extends OperationName>(
    operation: Name,
    request: Outgoing<Name>,
    timeoutMs: number,
  ): Promise<Output<Name>> {
    if (!LEAN_OPERATIONS.has(operation)) return this.#sdk.send(operation, request, timeoutMs);
    const body = Buffer.from(textOf(request));
    const deadline = new Deadline(systemTimer, timeoutMs);
    const identity = this.#loaded.identities.current;
    const answer =
      identity === undefined
        ? this.#sendLater(operation, body, deadline)
        : this.#sendOrRenew(identity, operation, body, deadline);
    return answer as Promise<Output<Name>>;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([this.#pool?.destroy(), this.#sdk.close()]);
  }

  async #load(): Promise<void> {
    const [{ Pool }, { Identities, Signer }] = await Promise.all([
      import("./http-pool.ts"),
      import("./signer.ts"),
      this.#sdk.load("GetItem"),
    ]);
    const identities = new Identities(() => this.#sdk.dataClient());
    this.#code = { Pool, signer: new Signer(), identities };
  }

  async #sendLater(operation: OperationName, body: Buffer, deadline: Deadline): Promise<object> {
    return this.#sendOrRenew(await this.#identify(deadline), operation, body, deadline);
  }

  /** Sends once more with newer credentials where those at hand have expired. */
  #sendOrRenew(
    identity: Identity,
    operation: OperationName,
    body: Buffer,
    deadline: Deadline,
  ): Promise<object> {
    return this.#sendAs(identity, operation, body, deadline).catch(async (error: unknown) => {
      const renewed = isStale(error) ? await this.#renewed(identity, deadline) : undefined;
      if (renewed === undefined) throw error;
      return this.#sendAs(renewed, operation, body, deadline);
    });
  }

  #sendAs(
    identity: Identity,
    operation: OperationName,
    body: Buffer,
    deadline: Deadline,
  ): Promise<object> {
    const { signer } = this.#loaded;
    const { headers, atMs } = signer.sign(operation, body, identity);
    const pool = this.#poolOf(identity.endpoint.origin);
    const { path } = identity.endpoint;
    const sentAtMs = this.#serverDate.now();
    return exchange(pool, { path, headers, body }, deadline.timeoutMs, (answer) => {
      const serverMs = this.#serverDate.see(headerOf(answer.headers, "date"), sentAtMs);
      const corrected = serverMs !== undefined && signer.correct(atMs, serverMs);
      try {
        return readAnswer(answer);
      } catch (error) {
        // As the SDK says it: the next attempt is signed with the server's time.
        if (corrected && isServiceError(error)) error.$metadata.clockSkewCorrected = true;
        throw error;
      }
    });
  }

  /** `load` comes before every request. */
  get #loaded(): Code {
    return this.#code as Code;
  }

  #poolOf(origin: string): Pool {
    if (this.#pool !== undefined && this.#poolOrigin === origin) return this.#pool;
    if (this.#closed) throw new SendError(new Error("The store was closed"), "prepared");
    void this.#pool?.close();
    const { Pool } = this.#loaded;
    this.#poolOrigin = origin;
    this.#pool = new Pool(origin, {
      connections: CONNECTIONS_MAX,
      pipelining: 1,
      keepAliveTimeout: KEEP_ALIVE_MS,
      connect: { timeout: connectTimeoutMs(this.#timeoutMs) },
      // A call has its own deadline.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    return this.#pool;
  }

  #identify(deadline: Deadline): Promise<Identity> {
    return inTime(deadline, () => this.#loaded.identities.resolve());
  }

  /** Returns `undefined` when there are no newer credentials, or they do not come in time. */
  async #renewed(identity: Identity, deadline: Deadline): Promise<Identity | undefined> {
    try {
      return await inTime(deadline, () => this.#loaded.identities.renew(identity));
    } catch {
      return undefined;
    }
  }
}

async function inTime<T>(deadline: Deadline, work: () => Promise<T>): Promise<T> {
  try {
    return await within(deadline.timeoutMs, work);
  } catch (error) {
    throw new SendError(error, "prepared");
  }
}

function isStale(error: unknown): boolean {
  return (
    error instanceof SendError &&
    STALE_CREDENTIALS.has((error.cause as Error | undefined)?.name ?? "")
  );
}

function isServiceError(error: unknown): error is ServiceError {
  return error instanceof Error && "$metadata" in error;
}

/** Returns the body of a request, however it was made. */
function textOf<Name extends OperationName>(request: Outgoing<Name>): string {
  return request instanceof Prepared ? request.text() : JSON.stringify(request);
}
