/** Trees of entities: no entity is its own ancestor, and the chain of ancestors is bounded. */

import { ValidationError } from "../../domain/errors/errors.ts";
import { textAt } from "../../storage/item.ts";
import { childrenPartition, entityKey, parseEntityPartition } from "../keys.ts";
import { queryRecords } from "../query-records.ts";
import type { RecordContext } from "../record-context.ts";

/** The longest way from an entity to the top of its tree. */
export const ANCESTORS_MAX = 8;

/**
 * Refuses a parent with which the tree would be circular or too deep. Where the chain ends at an
 * ancestor that was never created, returns its id: the caller's write must require that it still
 * does not exist, because its record could extend the chain.
 */
export async function checkAncestry(
  context: RecordContext,
  id: string,
  parentId: string,
): Promise<string | undefined> {
  const { store, namespaceId } = context;
  let ancestor = parentId;
  for (let count = 1; ; count += 1) {
    if (ancestor === id) {
      throw new ValidationError("parent_id", parentId, `"${id}" would be its own ancestor`);
    }
    if (count > ANCESTORS_MAX) throw tooDeep(parentId);
    const item = await store.get(entityKey(namespaceId, ancestor), { consistent: true });
    const next = textAt(item, "parent_id");
    if (next === undefined) {
      await checkDescendants(context, { id, parentId, ancestors: count });
      return item === undefined ? ancestor : undefined;
    }
    ancestor = next;
  }
}

/** Checks descendants: children that were created before their parent move down with it. */
async function checkDescendants(
  context: RecordContext,
  { id, parentId, ancestors }: { id: string; parentId: string; ancestors: number },
): Promise<void> {
  let generation = [id];
  for (let above = ancestors + 1; generation.length > 0; above += 1) {
    const children: string[] = [];
    for (const parent of generation) {
      const partition = childrenPartition(context.namespaceId, parent);
      for await (const item of queryRecords(context, { index: "GSI1", partition })) {
        children.push(parseEntityPartition(item.PK)?.entityId ?? "");
      }
    }
    if (children.length > 0 && above > ANCESTORS_MAX) throw tooDeep(parentId);
    generation = children;
  }
}

function tooDeep(parentId: string): ValidationError {
  const reason = `the tree would be deeper than ${ANCESTORS_MAX} ancestors`;
  return new ValidationError("parent_id", parentId, reason);
}
