/** Names of schemas and roles, as texts of statements have them. */

import { show } from "../../../domain/check.ts";
import { ValidationError } from "../../../domain/errors/errors.ts";

export const DEFAULT_SCHEMA = "zae_limiter";

const SCHEMA_PATTERN = /^[a-z_][a-z0-9_]{0,62}$/;
const ROLE_BYTES_MAX = 63;

/** Checks the name of a schema. */
export function checkSchema(value: unknown): string {
  const expected = "a lower-case letter or _, then letters, digits and _, 63 in all";
  if (typeof value !== "string" || !SCHEMA_PATTERN.test(value)) {
    throw new ValidationError("schema", value, `expected ${expected}, got ${show(value)}`);
  }
  if (value.startsWith("pg_") || value === "information_schema") {
    throw new ValidationError("schema", value, `${show(value)} belongs to PostgreSQL itself`);
  }
  return value;
}

/** Checks the name of a role that is granted rights. */
export function checkRole(value: unknown): string {
  const isRole =
    typeof value === "string" && value !== "" && Buffer.byteLength(value) <= ROLE_BYTES_MAX;
  if (isRole && !value.includes("\0")) return value;
  throw new ValidationError("grant", value, `expected the name of a role, got ${show(value)}`);
}

/** Returns a name in double quotes. */
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** Returns a text in single quotes. */
export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
