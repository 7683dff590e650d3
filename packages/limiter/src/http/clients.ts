/** The entity that a request counts for: its client's key, or its client's address. */

import { show } from "../domain/check.ts";
import { ValidationError } from "../domain/errors/errors.ts";
import { addressId } from "./client-address.ts";
import { entityIdOf } from "./entity-ids.ts";
import type { CheckedOptions } from "./options.ts";
import { looksSecret, warnOfSecret } from "./secrets.ts";

/**
 * How an adapter reads a request `R` of its framework, with what else it knows of the connection,
 * `C`. One for all requests: functions per request would cost more.
 */
export interface Reading<R, C> {
  /** Returns the client's address as the framework reports it. */
  readonly address: (request: R, connection: C) => string | undefined;
  /** Returns what aborts when the client goes away; asked for only where a request waits. */
  readonly signal: (request: R, connection: C) => AbortSignal | undefined;
}

/** How many addresses are remembered; then all are forgotten, which costs less than order. */
const REMEMBERED_MAX = 10_000;

export class Clients<R, C> {
  readonly #options: CheckedOptions<R>;
  readonly #reading: Reading<R, C>;
  /** Entity ids by address: parsing one, of IPv6 above all, costs more than a lookup. */
  readonly #ids = new Map<string, string>();
  #hasWarned = false;

  constructor(options: CheckedOptions<R>, reading: Reading<R, C>) {
    this.#options = options;
    this.#reading = reading;
  }

  /** Returns the entity of a request; `undefined` where it has no key. */
  async entityOf(request: R, connection: C): Promise<string | undefined> {
    const { anonymous, entityId: keyOf } = this.#options;
    if (keyOf === undefined) return this.addressOf(request, connection);
    const key = await keyOf(request);
    // A client may send a header without a value: that is no key, and no fault of the server.
    if (key === undefined || key === null || key === "") return anonymous;
    if (typeof key !== "string") {
      const detail = `expected \`entityId\` to return a text or undefined, got ${show(key)}`;
      throw new ValidationError("entityId", key, detail);
    }
    if (!this.#hasWarned && looksSecret(key)) {
      this.#hasWarned = true;
      warnOfSecret();
    }
    return entityIdOf(key);
  }

  /** Returns the entity of the client's address. */
  addressOf(request: R, connection: C): string {
    const address = this.#reading.address(request, connection);
    if (address !== undefined) return this.#ids.get(address) ?? this.#remember(address);
    const { anonymous } = this.#options;
    if (anonymous !== undefined) return anonymous;
    throw new ValidationError(
      "entityId",
      undefined,
      "the client's address is not known here; pass `entityId` to name the entity of a request",
    );
  }

  #remember(address: string): string {
    const id = addressId(address, this.#options.ipv6Subnet);
    if (this.#ids.size >= REMEMBERED_MAX) this.#ids.clear();
    this.#ids.set(address, id);
    return id;
  }

  /** Whether a client is known to have gone: a socket that was closed has no address any more. */
  isGone(request: R, connection: C): boolean {
    if (this.#options.entityId !== undefined) return false;
    if (this.#reading.address(request, connection) !== undefined) return false;
    return this.goneSignal(request, connection)?.aborted === true;
  }

  /** Returns what aborts when the client goes away. */
  goneSignal(request: R, connection: C): AbortSignal | undefined {
    return this.#reading.signal(request, connection);
  }
}
