/** Names of members of a limiter that only the edges of this package use. */

/** Names the method that decides without a promise where nothing is waited for. */
export const TRY_NOW = Symbol("zae-limiter.tryNow");

/** Names the method that returns the limits which a call may consume, for the edges. */
export const LIMIT_NAMES = Symbol("zae-limiter.limit-names");

/** Names the amounts of a request by the limits that apply to it (`AmountsFor`), for the edges. */
export const AMOUNTS_FOR = Symbol("zae-limiter.amounts-for");

/** Names the setting `totals` of a limiter, for the edges: where it is unset, they count totals. */
export const TOTALS = Symbol("zae-limiter.totals");

/** Names the store of a limiter, for the edges, as long as it was not reached. */
export const LATE = Symbol("zae-limiter.late");
