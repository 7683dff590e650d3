/** Makes the legs of a call and consumes them; repeats both when limits or links were outdated. */

import { Deadline } from "../base/time.ts";
import type { ConsumeResult } from "../buckets/bucket-consumer.ts";
import type { Leg, LegOutcome, Link } from "../buckets/leg.ts";
import { sameLink } from "../buckets/link.ts";
import { tooBusy } from "../domain/errors/unavailability.ts";
import type { RepositoryInternals } from "../repository/internals.ts";
import type { MissingLimits } from "./acquire-request.ts";
import type { Seen } from "./decision.ts";
import { inTime } from "./in-time.ts";
import type { Granted } from "./lease/holding.ts";
import { type ConsumeTarget, Legs } from "./legs.ts";
import { Links } from "./links.ts";

export interface ConsumeRoundsOptions {
  readonly speculativeWrites: boolean | undefined;
  readonly missingLimits: MissingLimits | undefined;
  readonly onRefunded: (leg: Leg) => void;
}

/** A call that was refused: the legs and what they have. */
export interface Refused extends Seen {
  readonly granted: false;
  /** Decided by cached states. */
  readonly local: boolean;
}

/** How often outdated limits or links are read again. */
const ROUNDS_MAX = 4;

export class ConsumeRounds {
  readonly legs: Legs;
  readonly #internals: RepositoryInternals;
  readonly #options: ConsumeRoundsOptions;
  readonly #links: Links;

  constructor(internals: RepositoryInternals, options: ConsumeRoundsOptions) {
    this.#internals = internals;
    this.#options = options;
    this.#links = new Links(internals.buckets, internals.clock);
    this.legs = new Legs(internals.resolver, this.#links, options.missingLimits);
  }

  /** Consumes all legs, or none; no promise where what is cached refuses the call. */
  consume(
    target: ConsumeTarget,
    signal?: AbortSignal,
    deadline: Deadline = this.deadline(),
  ): Refused | Promise<Granted | Refused> {
    const legs = this.legs.remembered(target);
    if (legs === undefined) return this.#consumeIn(target, signal, deadline);
    const result = this.#consume(legs, deadline, signal);
    const isNow = !(result instanceof Promise) && result.outcome === "refused";
    if (isNow && !hasCascading(result.withoutBucket)) return refused(legs, result);
    return this.#consumeIn(target, signal, deadline, { legs, result });
  }

  /** The same in rounds, of which the first may have begun. */
  async #consumeIn(
    target: ConsumeTarget,
    signal: AbortSignal | undefined,
    deadline: Deadline,
    begun?: { legs: readonly Leg[]; result: ConsumeResult | Promise<ConsumeResult> },
  ): Promise<Granted | Refused> {
    let isOutdated = false;
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      const first = round === 0 ? begun : undefined;
      const legs = first?.legs ?? (await this.#legsOf(target, deadline, isOutdated));
      const result = await (first?.result ?? this.#consume(legs, deadline, signal));
      if (result.outcome === "granted") {
        const { legs: outcomes } = result;
        legs.forEach(({ entityId, resource }, at) => {
          this.#links.see(entityId, resource, (outcomes[at] as LegOutcome).link, true);
        });
        return { legs, outcomes };
      }
      if (result.outcome === "refused") {
        if (await this.#areMoved(result.withoutBucket, deadline)) continue;
        return refused(legs, result);
      }
      if (result.outcome === "relinked") {
        legs.forEach(({ entityId, resource }, at) => {
          this.#links.see(entityId, resource, result.links[at] as Link, false);
        });
      } else {
        isOutdated = true;
        this.#internals.resolver.cache.clear();
      }
    }
    throw tooBusy("The limits changed too often to be applied in time");
  }

  /** The legs of a call and their balances, without consuming anything. */
  async look(target: ConsumeTarget): Promise<Seen> {
    const deadline = this.deadline();
    const legs = await this.#legsOf(target, deadline, false);
    return { legs, balancesMilli: await this.#internals.buckets.read(legs, { deadline }) };
  }

  /**
   * Whether entities without a bucket cascade otherwise than the legs say. Their links come from
   * their records: one that was shown more than a second ago is read again before it refuses.
   */
  async #areMoved(legs: readonly Leg[] | undefined, deadline: Deadline): Promise<boolean> {
    const cascading = legs?.filter(isCascading) ?? [];
    const links = await Promise.all(
      cascading.map(({ entityId, resource, config }) => {
        const policy = async () => config.cascade;
        return this.#links.of(entityId, resource, { deadline, policy, fresh: true });
      }),
    );
    return cascading.some((leg, at) => !sameLink(leg.link, (links[at] as { link: Link }).link));
  }

  #consume(
    legs: readonly Leg[],
    deadline: Deadline,
    signal: AbortSignal | undefined,
  ): ConsumeResult | Promise<ConsumeResult> {
    const { onRefunded, speculativeWrites } = this.#options;
    const speculative = speculativeWrites !== false;
    return this.#internals.buckets.consume(legs, { deadline, signal, speculative, onRefunded });
  }

  #legsOf(target: ConsumeTarget, deadline: Deadline, forced: boolean): Promise<readonly Leg[]> {
    const { buckets, timer } = this.#internals;
    const legs = this.legs.of(target, { deadline }, forced);
    // A store in this process can only wait for locks, and ends that wait by itself.
    return buckets.embedded ? legs : inTime(timer, deadline, legs);
  }

  /** Returns the end of a call that begins now. */
  deadline(): Deadline {
    return new Deadline(this.#internals.timer, this.#internals.timeoutMs);
  }
}

/** Whether an entity cascades by a link that may have changed. */
function isCascading({ link, linkIsFresh }: Leg): boolean {
  return link.cascade && !linkIsFresh;
}

function hasCascading(legs: readonly Leg[] | undefined): boolean {
  return legs?.some(isCascading) === true;
}

function refused(
  legs: readonly Leg[],
  { balancesMilli, local, shownAtMs }: Extract<ConsumeResult, { outcome: "refused" }>,
): Refused {
  return { granted: false, legs, balancesMilli, local, shownAtMs };
}
