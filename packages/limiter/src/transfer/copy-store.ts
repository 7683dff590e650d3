/** Copies a store to another one of any kind: a team begins on SQLite, and moves when it grows. */

import { checkFields, checkFlag, checkFunction } from "../domain/check.ts";
import { ValidationError } from "../domain/errors/errors.ts";
import { checkNamespace } from "../domain/names.ts";
import { checkAuditor } from "../records/audit.ts";
import type { StoreOptions, StoreOrUrl } from "./copied-store.ts";
import type { CopyProgress, CopyReport } from "./copy-report.ts";

/** The options of `copyStore`. */
export interface CopyOptions {
  /** The namespaces to copy; all active ones when absent. */
  readonly namespaces?: readonly string[];
  /**
   * `true`: limiters may use the source meanwhile, and a second pass copies what has changed. The
   * copy stays open: a run without it, when they have stopped, ends it.
   */
  readonly live?: boolean;
  /** `true`: only counts what there is to copy, and writes nothing. */
  readonly dryRun?: boolean;
  /** The person or program that copies, for the audit log of the target. */
  readonly principal?: string;
  /** Options to open the source with, where it is an address. */
  readonly from?: StoreOptions;
  /** Options to open the target with, where it is an address. */
  readonly to?: StoreOptions;
  /** Stops the copy between two batches; the same call goes on there. */
  readonly signal?: AbortSignal;
  /** Called after each batch. */
  readonly onProgress?: (progress: CopyProgress) => void;
}

const FIELDS = [
  "namespaces",
  "live",
  "dryRun",
  "principal",
  "from",
  "to",
  "signal",
  "onProgress",
] as const satisfies readonly (keyof CopyOptions)[];

/**
 * Copies namespaces with everything in them: entities, limits, switches, usage, audit, balances.
 *
 * Both sides are compared at the end, and the report says what differs. A copy that was interrupted
 * goes on with the same call. It is refused with a `CopyRefusedError` when the source changes
 * meanwhile, unless it is `live`, and when the target has other data of a namespace.
 *
 * @example
 * ```ts
 * import { copyStore, Repository } from 'zae-limiter';
 * const from = await Repository.open('memory:'); // or 'sqlite:limits.db'
 * const to = await Repository.open('memory:'); // or 'postgres://app@db/main'
 * await from.limits.setSystem(['rpm:100']);
 * const { same, namespaces } = await copyStore(from, to);
 * console.log(same, namespaces[0]?.counts.limits); // true 1
 * await Promise.all([from.close(), to.close()]);
 * ```
 */
export async function copyStore(
  from: StoreOrUrl,
  to: StoreOrUrl,
  options: CopyOptions = {},
): Promise<CopyReport> {
  checkOptions(options);
  // Loaded when a store is first copied: it needs cryptography, which programs start without.
  const { copyNamespaces } = await import("./copy-namespaces.ts");
  return copyNamespaces(from, to, options);
}

function checkOptions(options: CopyOptions): void {
  checkFields("options", options, FIELDS);
  const { namespaces, live, dryRun, principal, onProgress } = options;
  for (const name of namespaces ?? []) checkNamespace(name);
  if (namespaces?.length === 0) {
    throw new ValidationError("namespaces", [], "expected at least one name, or nothing for all");
  }
  checkFlag("live", live);
  checkFlag("dryRun", dryRun);
  checkAuditor(principal);
  if (onProgress !== undefined) checkFunction("onProgress", onProgress);
}
