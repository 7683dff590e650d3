/**
 * Changes are refused in a namespace that was deleted. Whoever holds it open may not know yet, and
 * what is written after a purge would stay for ever: nothing leads to it any more.
 */

import { NamespaceStateError } from "../domain/errors.ts";
import type { Item } from "../storage/item.ts";
import type { Write } from "../storage/item-store.ts";
import { textAt } from "./fields.ts";
import { namespaceIdKey } from "./keys.ts";
import type { RecordContext } from "./record-context.ts";

const ACTIVE = "active";

/** Reads the state and refuses; for changes that cannot afford to meet at one item. */
export async function checkActive({ store, namespaceId }: RecordContext): Promise<void> {
  refuseInactive(namespaceId, await store.get(namespaceIdKey(namespaceId), { consistent: true }));
}

/** The part of a transaction that lets it fail unless the namespace is active. */
export function whileActive(namespaceId: string): Write {
  return {
    check: namespaceIdKey(namespaceId),
    condition: [{ is: "=", name: "status", value: ACTIVE }],
  };
}

/** Refuses unless the record of the namespace says that it is active. */
export function refuseInactive(namespaceId: string, record: Item | undefined): void {
  const state = record === undefined ? "unregistered" : textAt(record, "status");
  if (state === ACTIVE) return;
  const name = record === undefined ? undefined : textAt(record, "namespace_name");
  throw new NamespaceStateError(`The namespace "${name ?? namespaceId}" is ${state}`, {
    namespaceName: name ?? "",
    state: state ?? "",
  });
}
