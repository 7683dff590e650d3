/**
 * Background responses: calls whose answer comes before their usage. What such a call holds is kept
 * in the store, so that any gateway of the namespace can settle it when the usage is known.
 */

import { type KeptLease, settleKept } from "@zae-limiter/limiter/acquire/lease/kept-lease.ts";
import type { SettledAmounts } from "@zae-limiter/limiter/acquire/lease/lease.ts";
import type { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import type { JsonValue } from "@zae-limiter/limiter/domain/json.ts";
import type { PriceSpec } from "@zae-limiter/limiter/domain/price.ts";
import { INTERNALS, type RepositoryInternals } from "@zae-limiter/limiter/repository/internals.ts";
import { hashOf } from "./keys.ts";

/** Providers keep a response for 30 days. */
const KEPT_MS = 30 * 86_400_000;
const NOTE_PREFIX = "gateway/response/";

/** A background response as it is stored. */
export type Remembered = {
  /** The key that made it: no other one may ask for it. */
  readonly keyId: string;
  readonly entityId: string;
  readonly resource: string;
  /** The upstream that has it. */
  readonly upstream: string;
  /** The consumption of the call; `null` where nothing was counted, or once it is settled. */
  readonly kept: KeptLease | null;
  /** The price of its model when the call was granted; absent: it costs no money. */
  readonly price?: PriceSpec;
  /** Epoch milliseconds. */
  readonly expiresMs: number;
};

export class BackgroundResponses {
  readonly #limiter: RateLimiter;
  readonly #internals: RepositoryInternals;

  constructor(limiter: RateLimiter) {
    this.#limiter = limiter;
    this.#internals = limiter.repository[INTERNALS];
  }

  /**
   * Stores a response by the id that the provider gave it. The first of the same id stays; only
   * what its call holds is added, once that is known.
   */
  async remember(
    id: string,
    keyId: string,
    entityId: string,
    resource: string,
    upstream: string,
    kept: KeptLease | undefined,
    price?: PriceSpec,
  ): Promise<void> {
    const { notes, clock } = this.#internals;
    const expiresMs = clock() + KEPT_MS;
    const value: Remembered = {
      keyId,
      entityId,
      resource,
      upstream,
      kept: kept ?? null,
      ...(price === undefined ? {} : { price }),
      expiresMs,
    };
    const isNew = await notes.create(noteOf(id, keyId), value, { expiresMs });
    if (isNew || kept === undefined) return;
    const first = await this.of(id, keyId);
    if (first?.kept !== null) return;
    const holding = { ...first, kept };
    await notes.replace(noteOf(id, keyId), first, holding, { expiresMs: first.expiresMs });
  }

  /** Returns the response that a key has made; `undefined` for those of other keys. */
  async of(id: string, keyId: string): Promise<Remembered | undefined> {
    const value = await this.#internals.notes.get(noteOf(id, keyId));
    return isRemembered(value) && value.keyId === keyId ? value : undefined;
  }

  /**
   * Sets the final amounts of a response that `of` has returned; later calls, here or in another
   * gateway, change nothing. A process that ends in between leaves what the call held consumed.
   */
  async settle(id: string, remembered: Remembered, amounts: SettledAmounts): Promise<void> {
    const { kept, keyId, expiresMs } = remembered;
    if (kept === null) return;
    const { notes } = this.#internals;
    const settled = { ...remembered, kept: null };
    const isFirst = await notes.replace(noteOf(id, keyId), remembered, settled, { expiresMs });
    if (isFirst) await settleKept(this.#limiter, kept, amounts);
  }
}

/** Returns the name of a note. It is hashed, because clients choose the id that they ask for. */
function noteOf(id: string, keyId: string): string {
  return NOTE_PREFIX + hashOf(`${keyId}\n${id}`);
}

function isRemembered(value: JsonValue | undefined): value is Remembered {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const { keyId, entityId, resource, upstream, kept, expiresMs } = value as Partial<Remembered>;
  const texts = [keyId, entityId, resource, upstream];
  const isKept = kept === null || Array.isArray(kept?.holdings);
  return texts.every((text) => typeof text === "string") && isKept && typeof expiresMs === "number";
}
