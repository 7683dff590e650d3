/**
 * Refuses changes in a deleted namespace. A process that has it open may not know of the deletion,
 * and records written after a purge could never be found and removed.
 */

import { NamespaceStateError } from "../../domain/errors/errors.ts";
import { type Item, textAt } from "../../storage/item.ts";
import type { Write } from "../../storage/item-store.ts";
import { namespaceIdKey } from "../keys.ts";
import type { RecordContext } from "../record-context.ts";

const ACTIVE = "active";

/** Reads the state and refuses; for changes that cannot afford to meet at one item. */
export async function checkActive({ store, namespaceId }: RecordContext): Promise<void> {
  refuseInactive(namespaceId, await store.get(namespaceIdKey(namespaceId), { consistent: true }));
}

/** Returns the part of a transaction that lets it fail unless the namespace is active. */
export function whileActive(namespaceId: string): Write {
  return {
    check: namespaceIdKey(namespaceId),
    condition: [{ is: "=", name: "status", value: ACTIVE }],
  };
}

/** Why a namespace may not be used. */
export interface InactiveNamespace {
  readonly name: string;
  readonly state: string;
}

/** Returns what the record of a namespace says against using it; `undefined` while it is active. */
export function inactiveIn(record: Item | undefined): InactiveNamespace | undefined {
  if (record === undefined) return { name: "", state: "unregistered" };
  const state = textAt(record, "status") ?? "";
  return state === ACTIVE ? undefined : { name: textAt(record, "namespace_name") ?? "", state };
}

/** Returns the error for a namespace that may not be used. */
export function inactiveError(namespaceId: string, inactive: InactiveNamespace) {
  const { name, state } = inactive;
  const shown = name === "" ? namespaceId : name;
  return new NamespaceStateError(`The namespace "${shown}" is ${state}`, {
    namespaceName: name,
    state,
  });
}

/** Refuses unless the record of the namespace says that it is active. */
export function refuseInactive(namespaceId: string, record: Item | undefined): void {
  const inactive = inactiveIn(record);
  if (inactive !== undefined) throw inactiveError(namespaceId, inactive);
}
