/** Something that must never happen, and did. */

export type CheckerName =
  | "over-admission"
  | "conservation"
  | "books"
  | "ghosts"
  | "leases"
  | "links"
  | "switches"
  | "operations"
  | "shards"
  | "patience"
  | "refusals"
  | "availability"
  | "feed"
  | "crash";

export class Violation extends Error {
  override readonly name = "Violation";

  constructor(
    readonly checker: CheckerName,
    /** The bucket, process or call it is about. */
    readonly subject: string,
    readonly detail: string,
  ) {
    super(`${checker}: ${subject}: ${detail}`);
  }
}
