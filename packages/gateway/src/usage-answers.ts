/** Answers `GET /v1/usage`: the limits of the entity of a key, what is used, when they reset. */

import { NO_LIMITS } from "@zae-limiter/limiter/acquire/call-legs.ts";
import type { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { boundedMap } from "@zae-limiter/limiter/base/bounded-map.ts";
import type { Clock } from "@zae-limiter/limiter/base/time.ts";
import { currencyOf } from "@zae-limiter/limiter/core/micro-dollars.ts";
import { isoSeconds } from "@zae-limiter/limiter/core/windows.ts";
import { ResourceDisabled, ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import type { LimitStatus } from "@zae-limiter/limiter/domain/limit-status.ts";
import { TOTAL } from "@zae-limiter/limiter/domain/names.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";

/** How long an answer is given again without reading the store. */
const CACHE_MS = 5000;
const CACHED_MAX = 10_000;
/** Models in an answer, those that were used last; each costs a reading of its buckets. */
const MODELS_MAX = 20;

interface Answer {
  readonly text: Promise<string>;
  readonly untilMs: number;
}

/** Reads the usage of entities, and remembers the answers for a few seconds. */
export class UsageAnswers {
  readonly #limiter: RateLimiter;
  readonly #clock: Clock;
  readonly #showsAncestors: boolean;
  readonly #answers = boundedMap<Answer>(CACHED_MAX);

  constructor(limiter: RateLimiter, showsAncestors: boolean) {
    this.#limiter = limiter;
    this.#clock = limiter.repository[INTERNALS].clock;
    this.#showsAncestors = showsAncestors;
  }

  /** Returns the body for an entity; requests that come meanwhile share the reading. */
  async of(entityId: string): Promise<string> {
    const nowMs = this.#clock();
    const known = this.#answers.get(entityId);
    if (known !== undefined && known.untilMs > nowMs) return known.text;
    const text = this.#read(entityId, nowMs);
    this.#answers.set(entityId, { text, untilMs: nowMs + CACHE_MS });
    // A store that was away is asked again by the next request.
    text.catch(() => this.#answers.delete(entityId));
    return text;
  }

  async #read(entityId: string, nowMs: number): Promise<string> {
    const used = await this.#usedModels(entityId);
    const models = used.slice(0, MODELS_MAX);
    // The total is read alone too: it applies to an entity that has used no model yet.
    const found = await Promise.all([...models, TOTAL].map((each) => this.#status(entityId, each)));
    const shown = new Map<string, LimitStatus>();
    for (const status of found.flat()) {
      if (!this.#showsAncestors && status.entityId !== entityId) continue;
      shown.set([status.entityId, status.resource, status.limitName].join("\n"), status);
    }
    return JSON.stringify({
      object: "usage",
      entity_id: entityId,
      as_of: isoSeconds(nowMs),
      limits: [...shown.values()].map((status) => limitJson(status)),
      has_more: used.length > models.length,
    });
  }

  /** Returns the resources that the entity has buckets for, the one that was used last first. */
  async #usedModels(entityId: string): Promise<string[]> {
    const { buckets } = this.#limiter.repository[INTERNALS];
    const usedMs = new Map<string, number>();
    for (const { resource, refilledAtMs } of await buckets.list(entityId)) {
      if (resource === TOTAL) continue;
      usedMs.set(resource, Math.max(refilledAtMs, usedMs.get(resource) ?? 0));
    }
    const byTime = [...usedMs].sort(
      ([left, leftMs], [right, rightMs]) => rightMs - leftMs || (left < right ? -1 : 1),
    );
    return byTime.map(([resource]) => resource);
  }

  /** Returns the limits of a resource; none where it is switched off or has no limits any more. */
  async #status(entityId: string, resource: string): Promise<readonly LimitStatus[]> {
    try {
      return await this.#limiter.status({ entityId, resource, totals: resource !== TOTAL });
    } catch (error) {
      if (error instanceof ResourceDisabled) return [];
      if (error instanceof ValidationError && error.reason.startsWith(NO_LIMITS)) return [];
      throw error;
    }
  }
}

/** Returns a limit in whole tokens; of money in micro-dollars. */
function limitJson(status: LimitStatus) {
  const { entityId, resource, limitName, limit, kind, available, resetsAtMs } = status;
  const currency = currencyOf(limitName);
  return {
    entity_id: entityId,
    resource,
    limit_name: limitName,
    limit: String(limit),
    kind,
    unit: currency === undefined ? "whole" : `micro_${currency}`,
    capacity: limit.capacity,
    used: status.used ?? Math.max(0, limit.capacity - available),
    available,
    full_in_seconds: status.fullAfterSeconds,
    resets_at: resetsAtMs === undefined ? null : isoSeconds(resetsAtMs),
    ...(status.soft === true ? { soft: true } : {}),
  };
}
