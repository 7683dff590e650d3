/** The rule by which an allowance comes back at once, instead of accruing. */

/** The part of a balance that the next period takes over. */
export type Carry = "none" | "debt" | "rest" | "both";

/** Periods that end when the local clock of a zone reaches a boundary. */
export interface CalendarRule {
  readonly kind: "quota";
  /** Five fields in canonical form, `0 0 1 * *`; several of them are joined by `;`. */
  readonly cron: string;
  /** The name of a time zone, such as `Europe/Berlin`. */
  readonly timeZone: string;
  readonly carry: Carry;
  /** The most whole tokens that `rest` and `both` carry. */
  readonly carryMax?: number;
}

/** A period that begins with the first granted call. */
export interface SessionRule {
  readonly kind: "session";
  /** The length of the period. */
  readonly seconds: number;
}

/** When a quota or a session resets. */
export type PeriodRule = CalendarRule | SessionRule;

/** Returns whether two limits reset by equal rules; rates, which never reset, are equal too. */
export function sameRule(one: PeriodRule | undefined, other: PeriodRule | undefined): boolean {
  if (one === other) return true;
  if (one === undefined || other === undefined) return false;
  if (one.kind === "session") return other.kind === "session" && one.seconds === other.seconds;
  return (
    other.kind === "quota" &&
    one.cron === other.cron &&
    one.timeZone === other.timeZone &&
    one.carry === other.carry &&
    one.carryMax === other.carryMax
  );
}
