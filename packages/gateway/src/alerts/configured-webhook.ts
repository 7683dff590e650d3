/** A webhook of the gateway's file. Addresses and secrets may come from the environment. */

import { checkChoice, checkFields, show } from "@zae-limiter/limiter/domain/check.ts";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import {
  checkWebhook,
  checkWebhookName,
  type SignedWebhook,
} from "@zae-limiter/limiter/records/alerts/webhooks.ts";
import type { Environment } from "../upstreams.ts";

const FIELDS = ["name", "url", "url_env", "secret_env", "format", "allow_private"];
/** The form that the secrets of Standard Webhooks have, of 24 to 64 bytes. */
const SECRET = /^whsec_[A-Za-z0-9+/]{32,86}={0,2}$/;

/** Reads a webhook of a file; throws at the first thing that is wrong. */
export function configuredWebhook(given: unknown, env: Environment): SignedWebhook {
  checkFields("webhook", given as object, FIELDS);
  const fields = given as Readonly<Record<string, unknown>>;
  const name = checkWebhookName(fields["name"] as string);
  const { url, url_env: variable } = fields;
  if ((url === undefined) === (variable === undefined)) {
    throw new ValidationError("url", name, "expected url, or url_env with the name of a variable");
  }
  const format = checkChoice("format", fields["format"] ?? "json", ["json", "slack"] as const);
  const checked = checkWebhook(name, {
    url: (url ?? variableOf("url_env", variable, env)) as string,
    format,
    allowPrivate: (fields["allow_private"] ?? false) as boolean,
  });
  return { name, ...checked, secret: secretOf(fields["secret_env"], format, env) };
}

/** Returns the secret that bodies are signed with; messages for Slack are not checked. */
function secretOf(variable: unknown, format: "json" | "slack", env: Environment): string {
  if (variable === undefined && format === "slack") return "";
  const secret = variableOf("secret_env", variable, env);
  if (SECRET.test(secret)) return secret;
  const reason = `expected ${String(variable)} to hold whsec_ and 24 to 64 bytes in base64`;
  throw new ValidationError("secret_env", variable, reason);
}

function variableOf(field: string, variable: unknown, env: Environment): string {
  if (typeof variable !== "string" || variable === "") {
    const reason = `expected ${field} with the name of a variable, got ${show(variable)}`;
    throw new ValidationError(field, variable, reason);
  }
  const value = env[variable];
  if (value !== undefined && value !== "") return value;
  throw new ValidationError(field, variable, `the variable ${variable} is not set`);
}
