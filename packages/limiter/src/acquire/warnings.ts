/** Warnings of leases, for the listener of the limiter or else for the process. */

import type { Announcer } from "./announcer.ts";
import type { LeaseWarning, LimiterWarning } from "./events.ts";

export class Warnings {
  readonly #onWarning: ((warning: LimiterWarning) => void) | undefined;
  /** Kinds that a caller may cause with every call: the process is warned of each kind once. */
  readonly #told = new Set<LeaseWarning["kind"]>();
  readonly #announcer: Announcer;

  constructor(onWarning: ((warning: LimiterWarning) => void) | undefined, announcer: Announcer) {
    this.#onWarning = onWarning;
    this.#announcer = announcer;
  }

  tell(warning: LeaseWarning): void {
    this.#announcer.publish({ type: "warning", warning });
    if (this.#onWarning !== undefined) {
      this.#onWarning(warning);
      return;
    }
    if (this.#told.has(warning.kind)) return;
    if (warning.kind !== "adjustment_failed") this.#told.add(warning.kind);
    process.emitWarning(messageOf(warning), {
      code: `ZAEL_${warning.kind.toUpperCase()}`,
      detail: detailOf(warning),
    });
  }
}

function messageOf(warning: LeaseWarning): string {
  const { kind, entityId, resource } = warning;
  if (kind === "adjustment_failed") {
    return `Could not write an adjustment of ${entityId} for ${resource}: its bucket has too many tokens`;
  }
  const { operation, limitName } = warning;
  const call = `${operation}({ ${limitName} }) of ${entityId} for ${resource}`;
  return kind === "amount_missing"
    ? `${call} got no amount: the estimate stays consumed`
    : `${call} got an amount below zero: the lease consumes 0`;
}

function detailOf(warning: LeaseWarning): string {
  if (warning.kind === "adjustment_failed") return String(warning.cause);
  const more = "Further warnings of this kind are not printed; pass onWarning to get all of them";
  return `The amount is ${String(warning.amount)}. ${more}`;
}
