/** Changes of the records that operators set: each with its audit event, in one transaction. */

import type { Write } from "../storage/item-store.ts";
import { type AuditEntry, type AuditLog, SYSTEM_SUBJECT } from "./audit.ts";
import type { ConfigResolver } from "./config/config-resolver.ts";
import { checkActive, whileActive } from "./namespaces/namespace-state.ts";
import type { RecordContext } from "./record-context.ts";

export class AuditedWrites {
  readonly #context: RecordContext;
  readonly #audit: AuditLog;
  readonly #resolver: ConfigResolver;

  constructor(context: RecordContext, audit: AuditLog, resolver: ConfigResolver) {
    this.#context = context;
    this.#audit = audit;
    this.#resolver = resolver;
  }

  /** Writes while the namespace is active; returns false where the condition does not hold. */
  async write(write: Write, entry: Omit<AuditEntry, "subject">): Promise<boolean> {
    const { store, namespaceId } = this.#context;
    const days = await this.#resolver.auditRetentionDays();
    const event = this.#audit.entry({ ...entry, subject: SYSTEM_SUBJECT }, days);
    for (;;) {
      const result = await store.transact([write, event, whileActive(namespaceId)]);
      if (result.ok || result.failures.has(0)) return result.ok;
      // Only a namespace that was deleted refuses it, which is an error unless it is there again.
      await checkActive(this.#context);
    }
  }
}
