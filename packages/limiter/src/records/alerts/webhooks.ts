/** The webhooks of a namespace: where alerts are delivered to. Operators set them. */

import { randomBytes, systemRandom } from "../../base/random.ts";
import { checkChoice, checkFields, checkFlag, show } from "../../domain/check.ts";
import { ValidationError } from "../../domain/errors/errors.ts";
import { type Item, textAt } from "../../storage/item.ts";
import { ITEM_EXISTS } from "../../storage/item-store.ts";
import { checkAuditor } from "../audit.ts";
import type { AuditedWrites } from "../audited-writes.ts";
import { inNamespace, WEBHOOK_PREFIX, webhookKey } from "../keys.ts";
import type { RecordContext } from "../record-context.ts";

const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;
const URL_LENGTH_MAX = 2048;
const SECRET_BYTES = 32;
const FORMATS = ["json", "slack"] as const;

/** An address that alerts are posted to. */
export interface WebhookSpec {
  /** `https://…`; `http://` only together with `allowPrivate`. */
  readonly url: string;
  /** `json`, signed, by default; `slack`: a message for a Slack incoming webhook. */
  readonly format?: "json" | "slack";
  /** Whether the address may be in a private network or on this machine. */
  readonly allowPrivate?: boolean;
}

/** A webhook, as it is listed: without its secret. */
export interface Webhook extends Required<WebhookSpec> {
  readonly name: string;
}

/** A webhook with its secret, for senders. */
export interface SignedWebhook extends Webhook {
  readonly secret: string;
}

/** The principal of a change. */
export interface WebhookOptions {
  /** The name that goes into the audit log. */
  readonly principal?: string;
}

/**
 * Addresses that alerts are posted to, by the gateway or by `zae-limiter alerts run`.
 *
 * @example
 * ```ts
 * import { Repository } from 'zae-limiter';
 * const repo = await Repository.open('memory:');
 * const { secret } = await repo.webhooks.set('ops', { url: 'https://example.com/alerts' });
 * console.log(secret.startsWith('whsec_')); // true
 * console.log((await repo.webhooks.list()).map(({ name }) => name)); // [ 'ops' ]
 * await repo.close();
 * ```
 */
export class WebhookRecords {
  readonly #context: RecordContext;
  readonly #writes: AuditedWrites;

  constructor(context: RecordContext, writes: AuditedWrites) {
    this.#context = context;
    this.#writes = writes;
  }

  /** Stores a webhook under a name, and returns its new secret: it is shown this once. */
  async set(
    name: string,
    spec: WebhookSpec,
    options: WebhookOptions = {},
  ): Promise<{ readonly secret: string }> {
    const { url, format, allowPrivate } = checkWebhook(checkWebhookName(name), spec);
    const principal = checkOptions(options);
    const secret = `whsec_${Buffer.from(randomBytes(systemRandom, SECRET_BYTES)).toString("base64")}`;
    const { namespaceId } = this.#context;
    const key = webhookKey(namespaceId, name);
    const put: Item = {
      ...key,
      ...inNamespace(namespaceId, key.PK),
      webhook_name: name,
      url,
      format,
      allow_private: allowPrivate,
      secret,
    };
    // The path may be a credential, as that of Slack is.
    const details = { name, host: new URL(url).host, format, allow_private: allowPrivate };
    await this.#writes.write({ put }, { action: "webhook_set", principal, details });
    return { secret };
  }

  /** Returns the webhooks by name, without their secrets. */
  async list(): Promise<Webhook[]> {
    const webhooks = await readWebhooks(this.#context);
    return webhooks.map(({ secret, ...webhook }) => webhook);
  }

  /** Removes a webhook; returns whether there was one. */
  async delete(name: string, options: WebhookOptions = {}): Promise<boolean> {
    const key = webhookKey(this.#context.namespaceId, checkWebhookName(name));
    const principal = checkOptions(options);
    const { store } = this.#context;
    if ((await store.get(key, { consistent: true })) === undefined) return false;
    const details = { name };
    const write = { delete: key, condition: [ITEM_EXISTS] };
    return this.#writes.write(write, { action: "webhook_deleted", principal, details });
  }
}

/** Returns the webhooks of a namespace with their secrets, by name. */
export async function readWebhooks({
  store,
  namespaceId,
}: RecordContext): Promise<SignedWebhook[]> {
  const { PK: partition } = webhookKey(namespaceId, "");
  const query = { partition, sort: { beginsWith: WEBHOOK_PREFIX }, consistent: true } as const;
  const webhooks: SignedWebhook[] = [];
  for await (const item of store.query(query)) {
    const text = (name: string) => textAt(item, name) ?? "";
    const [url, secret] = [text("url"), text("secret")];
    if (url === "" || secret === "") continue;
    webhooks.push({
      name: text("webhook_name"),
      url,
      format: text("format") === "slack" ? "slack" : "json",
      allowPrivate: item.allow_private === true,
      secret,
    });
  }
  return webhooks;
}

/** Checks what an operator says of a webhook. */
export function checkWebhook(name: string, spec: WebhookSpec): Required<WebhookSpec> {
  checkFields("webhook", spec, ["url", "format", "allowPrivate"]);
  const { url, format = "json", allowPrivate = false } = spec;
  const refuse = (reason: string) => new ValidationError("url", name, reason);
  checkChoice("format", format, FORMATS);
  checkFlag("allowPrivate", allowPrivate);
  if (typeof url !== "string" || url.length > URL_LENGTH_MAX || !URL.canParse(url)) {
    throw refuse(`expected an address such as https://example.com/alerts, got ${show(url)}`);
  }
  const { protocol, username, password } = new URL(url);
  if (username !== "" || password !== "") {
    throw refuse("an address with a name or a password is not taken: bodies are signed instead");
  }
  if (protocol !== "https:" && !(protocol === "http:" && allowPrivate)) {
    throw refuse(
      `expected https, got ${show(protocol)}; http is for private addresses that are allowed`,
    );
  }
  return { url, format, allowPrivate };
}

/** Checks the name of a webhook. */
export function checkWebhookName(name: string): string {
  if (typeof name === "string" && NAME.test(name)) return name;
  const reason = `expected 1 to 64 letters, digits and _ . -, got ${show(name)}`;
  throw new ValidationError("name", name, reason);
}

function checkOptions(options: WebhookOptions): string | undefined {
  checkFields("options", options, ["principal"]);
  return checkAuditor(options.principal);
}
