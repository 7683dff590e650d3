/** What can stop a migration. */

import { VersionError } from "../domain/version-errors.ts";

/** A migration could not be finished. What it has done stays done; the next run goes on from there. */
export class MigrationError extends VersionError {
  override readonly code = "ZAEL_MIGRATION";
  /** The version that could not be reached. */
  readonly migration: string;
  /** The versions that this run has reached. */
  readonly applied: readonly string[];

  constructor(
    message: string,
    details: { migration: string; applied?: readonly string[]; cause?: unknown },
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.migration = details.migration;
    this.applied = details.applied ?? [];
  }
}

/** Somebody else is migrating the table. */
export class MigrationRunningError extends VersionError {
  override readonly code = "ZAEL_MIGRATION_RUNNING";

  constructor(
    /** Who it is, if that is known. */
    readonly owner: string | undefined,
    /** Until when nobody else may; a run that is alive renews it. `YYYY-MM-DDTHH:MM:SSZ`. */
    readonly until: string | undefined,
  ) {
    super(
      "Another migration of this table is running" +
        (until === undefined ? "" : `, or was until it broke off. If so, try again after ${until}`),
    );
  }
}
