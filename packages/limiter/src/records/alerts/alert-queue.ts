/**
 * Alerts that wait to be delivered. A sender claims an alert by moving its next attempt away, on
 * condition that no other sender has: so one of several tries at a time, and when it ends before it
 * has reported, another one tries at the time that was moved to.
 */

import { type Item, keyOf, numberAt } from "../../storage/item.ts";
import type { Condition } from "../../storage/item-store.ts";
import { queryRecords } from "../query-records.ts";
import type { RecordContext } from "../record-context.ts";
import { ALERTS_OPEN, alertIndex, alertKey, decodeAlert, type StoredAlert } from "./alert-item.ts";

const HIGHEST = "\uffff";
/** How long a sender waits before its second attempt, and at most before any. */
const FIRST_WAIT_MS = 15_000;
const WAIT_MS_MAX = 3_600_000;
const ATTEMPTS = "attempts";
const NEXT = "next_ms";

/** The outcome of an attempt. */
export interface AttemptOutcome {
  /** The names of all webhooks that have the alert by now. */
  readonly deliveredTo: readonly string[];
  /** The answer to the attempt that failed; absent where none did. */
  readonly problem?: string | undefined;
  /** `delivered` and `given_up` end it; `open` leaves it for another attempt. */
  readonly state: StoredAlert["delivery"]["state"];
}

export class AlertQueue {
  readonly #context: RecordContext;

  constructor(context: RecordContext) {
    this.#context = context;
  }

  /** Returns alerts whose next attempt is due, the oldest first. */
  async due(limit: number): Promise<StoredAlert[]> {
    const { store, namespaceId, clock } = this.#context;
    const sort = { from: ALERTS_OPEN, to: ALERTS_OPEN + HIGHEST };
    const query = { index: "GSI4", partition: namespaceId, sort } as const;
    const found: StoredAlert[] = [];
    let keys: ReturnType<typeof keyOf>[] = [];
    const read = async () => {
      const items = await store.getMany(keys, { consistent: true });
      keys = [];
      found.push(...items.flatMap((item) => (isDue(item, clock()) ? [decodeAlert(item)] : [])));
    };
    for await (const item of queryRecords(this.#context, query)) {
      keys.push(keyOf(item));
      if (keys.length === limit) await read();
      if (found.length >= limit) break;
    }
    if (keys.length > 0) await read();
    return found.slice(0, limit);
  }

  /** Claims the next attempt; `undefined`: another sender has it, or has ended it. */
  async claim(alert: StoredAlert): Promise<StoredAlert | undefined> {
    const { store, namespaceId, clock } = this.#context;
    const { attempts } = alert.delivery;
    const waitMs = Math.min(WAIT_MS_MAX, FIRST_WAIT_MS * 2 ** Math.min(attempts, 20));
    const change = { set: { [ATTEMPTS]: attempts + 1, [NEXT]: clock() + waitMs } };
    const { ok, item } = await store.update(
      alertKey(namespaceId, alert),
      change,
      atAttempt(attempts),
    );
    return ok && item !== undefined ? decodeAlert(item) : undefined;
  }

  /** Writes the outcome of an attempt, unless another sender has claimed the alert since. */
  async attempted(alert: StoredAlert, outcome: AttemptOutcome): Promise<boolean> {
    const { store, namespaceId, clock } = this.#context;
    const { deliveredTo, problem, state } = outcome;
    const set = {
      delivered_to: deliveredTo.join(" "),
      ...(problem === undefined ? {} : { problem }),
      ...(state === "open" ? {} : { ended_ms: clock(), ...alertIndex(namespaceId, false, alert) }),
      ...(state === "given_up" ? { gave_up: "yes" } : {}),
    };
    const condition = atAttempt(alert.delivery.attempts);
    return (await store.update(alertKey(namespaceId, alert), { set }, condition)).ok;
  }
}

function isDue(item: Item | undefined, nowMs: number): item is Item {
  return item !== undefined && numberAt(item, "ended_ms") === undefined && nextMs(item) <= nowMs;
}

function nextMs(item: Item): number {
  return numberAt(item, NEXT) ?? 0;
}

function atAttempt(attempts: number): Condition {
  return [
    { is: "exists", name: "alert_id" },
    { is: "absent", name: "ended_ms" },
    { is: "=", name: ATTEMPTS, value: attempts, orAbsent: attempts === 0 },
  ];
}
