/**
 * The states of switches that a call may have found. A switch counts in the process
 * that has set it as soon as the call that set it returns, and in all others within the time that
 * limits are cached. Until then the state before it counts too.
 */

import { TOTAL } from "@zae-limiter/limiter/domain/names.ts";
import type { BucketLanding } from "./ledger.ts";
import { Violation } from "./violation.ts";

export type SwitchState = "enabled" | "disabled" | "bypass";

/** A resource, an entity, or an entity for one resource. */
export interface SwitchPlace {
  readonly entityId?: string;
  readonly resource?: string;
}

/** The window in which a call was decided, and the process that made it. */
export interface Deciding {
  readonly process: number;
  readonly sinceMs: number;
  readonly nowMs: number;
}

interface SwitchChange {
  /** `undefined`: the next wider level answers. */
  readonly value: SwitchState | undefined;
  readonly process: number;
  readonly begunMs: number;
  doneMs: number;
}

const ALWAYS: SwitchChange = {
  value: undefined,
  process: -1,
  begunMs: Number.NEGATIVE_INFINITY,
  doneMs: Number.NEGATIVE_INFINITY,
};

/** Maximum time between reading the switches of a call and the landing of its write. */
const CALL_MS = 1500;

export class SwitchHistory {
  readonly #changes = new Map<string, SwitchChange[]>();
  readonly #knownMs: number;

  /** `knownMs`: after so long every process knows of a switch. */
  constructor(knownMs: number) {
    this.#knownMs = knownMs;
  }

  get isEmpty(): boolean {
    return this.#changes.size === 0;
  }

  /** Records that a switch was sent. Call the result when the process knows that it is set. */
  begin(
    place: SwitchPlace,
    value: SwitchState | undefined,
    process: number,
    now: () => number,
  ): () => void {
    const change = { value, process, begunMs: now(), doneMs: Number.POSITIVE_INFINITY };
    const changes = this.#changes.get(nameOf(place)) ?? [];
    this.#changes.set(nameOf(place), changes);
    changes.push(change);
    return () => {
      change.doneMs = now();
    };
  }

  /** Returns the states that a call may have found. */
  possible(entityId: string, resource: string, deciding: Deciding): ReadonlySet<SwitchState> {
    const states = new Set<SwitchState>();
    // Of a total, what is set for all resources of an entity says nothing.
    const all = resource === TOTAL ? [] : [{ entityId }];
    const levels = [{ entityId, resource }, ...all, { resource }];
    const walk = (at: number): void => {
      const level = levels[at];
      if (level === undefined) {
        states.add("enabled");
        return;
      }
      for (const value of this.#valuesOf(level, deciding)) {
        if (value === undefined) walk(at + 1);
        else states.add(value);
      }
    };
    walk(0);
    return states;
  }

  /** Checks the state of the switches of a bucket that a grant or a refusal has `found`. */
  judge(
    subject: string,
    bucket: { readonly entityId: string; readonly resource: string },
    found: SwitchState,
    deciding: Deciding,
  ): void {
    const possible = this.possible(bucket.entityId, bucket.resource, deciding);
    if (possible.has(found)) return;
    const { entityId, resource } = bucket;
    const detail = `found ${entityId} ${resource} ${found}, where it is ${[...possible].join(" or ")}`;
    throw new Violation("switches", subject, detail);
  }

  /** Checks that a consume leaves balances unchanged under a bypass, and only then. */
  landed(landings: readonly BucketLanding[], process: number, nowMs: number): void {
    if (this.isEmpty) return;
    for (const { before, after, charged } of landings) {
      if (after === undefined || after.acquires <= (before?.acquires ?? 0)) continue;
      for (const limit of after.limits) {
        const was = before?.limits.find(({ name }) => name === limit.name)?.consumed ?? 0n;
        if (limit.consumed <= was) continue;
        const found = charged.get(limit.name) === 0n ? "bypass" : "enabled";
        const subject = `a consume of ${after.id} by process ${process}`;
        this.judge(subject, after, found, { process, sinceMs: nowMs - CALL_MS, nowMs });
      }
    }
  }

  #valuesOf(
    place: SwitchPlace,
    { process, sinceMs, nowMs }: Deciding,
  ): readonly (SwitchState | undefined)[] {
    const changes = [ALWAYS, ...(this.#changes.get(nameOf(place)) ?? [])];
    return changes
      .filter(({ begunMs }, at) => {
        const next = changes[at + 1];
        if (begunMs > nowMs || next === undefined) return begunMs <= nowMs;
        const knownMs = next.process === process ? 0 : this.#knownMs;
        return next.doneMs + knownMs >= sinceMs;
      })
      .map(({ value }) => value);
  }
}

function nameOf({ entityId = "*", resource = "*" }: SwitchPlace): string {
  return `${entityId} ${resource}`;
}
