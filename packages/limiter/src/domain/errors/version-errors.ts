/** Errors about versions of client, table and Lambda that do not fit together. */

import type { VersionCode } from "./error-code.ts";
import { ZaeLimiterError } from "./errors.ts";

/** Client, schema and Lambda do not fit together. */
export class VersionError extends ZaeLimiterError {
  override readonly code: VersionCode = "ZAEL_VERSION";
}

/** The deployed Lambda is older than this client. */
export class VersionMismatchError extends VersionError {
  override readonly code = "ZAEL_VERSION_MISMATCH";
  readonly clientVersion: string;
  readonly schemaVersion: string;
  /** The version of the deployed aggregator, where it is known. */
  readonly lambdaVersion: string | undefined;
  /** Whether `zae-limiter stack upgrade` can update the aggregator. */
  readonly canAutoUpdate: boolean;

  constructor(details: {
    clientVersion: string;
    schemaVersion: string;
    lambdaVersion?: string | undefined;
    message: string;
    canAutoUpdate?: boolean;
  }) {
    super(
      `Version mismatch: client ${details.clientVersion}, schema ${details.schemaVersion}, ` +
        `lambda ${details.lambdaVersion ?? "unknown"}. ${details.message}`,
    );
    this.clientVersion = details.clientVersion;
    this.schemaVersion = details.schemaVersion;
    this.lambdaVersion = details.lambdaVersion;
    this.canAutoUpdate = details.canAutoUpdate ?? false;
  }
}

/** This client cannot work with the schema of the table. */
export class IncompatibleSchemaError extends VersionError {
  override readonly code = "ZAEL_INCOMPATIBLE_SCHEMA";
  readonly clientVersion: string;
  readonly schemaVersion: string;
  /** Address of the page on how to migrate, if there is one. */
  readonly migrationGuideUrl: string | undefined;

  constructor(details: {
    clientVersion: string;
    schemaVersion: string;
    message: string;
    migrationGuideUrl?: string;
  }) {
    const see = details.migrationGuideUrl === undefined ? "" : ` See: ${details.migrationGuideUrl}`;
    super(
      `Client ${details.clientVersion} cannot use schema ${details.schemaVersion}. ` +
        `${details.message}${see}`,
    );
    this.clientVersion = details.clientVersion;
    this.schemaVersion = details.schemaVersion;
    this.migrationGuideUrl = details.migrationGuideUrl;
  }
}
