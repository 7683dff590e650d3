/** Errors that stop a migration. */

import { VersionError } from "@zae-limiter/limiter/domain/errors/version-errors.ts";

/** A migration could not be finished. Its changes stay; the next run continues from there. */
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

/** Another process is migrating the table. */
export class MigrationRunningError extends VersionError {
  override readonly code = "ZAEL_MIGRATION_RUNNING";

  constructor(
    /** The process that migrates, if it is known. */
    readonly owner: string | undefined,
    /** When its lease ends unless it is renewed. `YYYY-MM-DDTHH:MM:SSZ`. */
    readonly until: string | undefined,
  ) {
    super(
      "Another migration of this table is running" +
        (until === undefined ? "" : `, or stopped halfway. In that case try again after ${until}`),
    );
  }
}
