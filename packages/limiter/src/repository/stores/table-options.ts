/** Checks the options of a new table on DynamoDB. */

import { defined } from "../../base/defined.ts";
import { checkChoice, checkOptions, show } from "../../domain/check.ts";
import { ValidationError } from "../../domain/errors/errors.ts";
import { checkNamespace } from "../../domain/names.ts";
import { checkMaxShards, checkRelease, type NewVersion } from "../../records/version-record.ts";
import type { CreateTableOptions, DynamoOptions } from "../options.ts";
import type { TableLocation } from "./dynamodb.ts";
import { checkOpenOptions } from "./stores.ts";

const PROJECTIONS = ["KEYS_ONLY", "ALL"] as const;

/** The options of a new table, by where they go. */
export interface CheckedTableOptions {
  readonly namespaces: readonly string[];
  /** Goes into the version record. */
  readonly version: NewVersion;
  readonly indexes: Pick<CreateTableOptions, "gsi2Projection">;
  readonly connection: DynamoOptions;
}

/** Checks the options of a new table; it has no namespaces when none are given. */
export function checkCreateTableOptions(
  options: CreateTableOptions,
  location: TableLocation,
): CheckedTableOptions {
  checkOptions("options", options, "an object of options");
  const { namespaces = [], gsi2Projection, maxShards, ...others } = options;
  const { pythonLambdaVersion, ...connection } = others;
  if (maxShards !== undefined) checkMaxShards(maxShards);
  if (pythonLambdaVersion !== undefined) checkRelease("pythonLambdaVersion", pythonLambdaVersion);
  if (gsi2Projection !== undefined) checkChoice("gsi2Projection", gsi2Projection, PROJECTIONS);
  checkOpenOptions(connection, location);
  if (!Array.isArray(namespaces)) {
    const reason = `expected an array, got ${show(namespaces)}`;
    throw new ValidationError("namespaces", namespaces, reason);
  }
  for (const namespace of namespaces) checkNamespace(namespace);
  const version = defined({ maxShards, pythonLambdaVersion });
  return { namespaces, version, indexes: defined({ gsi2Projection }), connection };
}
