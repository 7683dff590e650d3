/** Moves an entity to another parent, in one transaction that keeps the tree without cycles. */

import type { Entity } from "../../domain/entity.ts";
import { EntityNotFoundError, RateLimiterUnavailable } from "../../domain/errors/errors.ts";
import type { JsonValue } from "../../domain/json.ts";
import { type Item, numberAt, textAt, type Value } from "../../storage/item.ts";
import { type Condition, ITEM_ABSENT, ITEM_EXISTS, type Write } from "../../storage/item-store.ts";
import type { PythonFollower } from "../config/python-follower.ts";
import { childrenPartition, entityKey } from "../keys.ts";
import type { RecordContext } from "../record-context.ts";
import { checkAncestry } from "./ancestry.ts";
import { decodeEntity } from "./entity-item.ts";

/** Counts the moves of an entity; absent before the first of this library. */
const GENERATION = "pgen";
const ATTEMPTS_MAX = 20;

type Details = Readonly<Record<string, JsonValue>>;

/** Returns the entity as it is stored then. Nothing is written where it has the parent already. */
export async function moveEntity(
  context: RecordContext,
  id: string,
  parentId: string | undefined,
  event: (details: Details) => Write,
  python: PythonFollower | undefined,
): Promise<Entity> {
  const { store, namespaceId } = context;
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    const record = await store.get(entityKey(namespaceId, id), { consistent: true });
    if (record === undefined) throw new EntityNotFoundError(id);
    const before = textAt(record, "parent_id");
    if (before === parentId) return decodeEntity(record);
    const checks = parentId === undefined ? [] : await ancestorChecks(context, id, parentId);
    // Only now: a move that is refused must not raise the version that clients need.
    await python?.claim("change of parent");
    const generation = (numberAt(record, GENERATION) ?? 0) + 1;
    const { set, remove } = parentChange(namespaceId, id, parentId, generation);
    const details = {
      old_parent_id: before ?? null,
      parent_id: parentId ?? null,
      pgen: generation,
    };
    const { ok } = await store.transact([
      { update: entityKey(namespaceId, id), change: { set, remove }, condition: asRead(record) },
      event(details),
      ...checks,
    ]);
    if (!ok) continue;
    const gone = Object.fromEntries(remove.map((name) => [name, undefined]));
    return decodeEntity({ ...record, ...set, ...gone } as Item);
  }
  throw new RateLimiterUnavailable(
    `The tree of "${id}" changed ${ATTEMPTS_MAX} times while it was moved. Try again`,
    { reason: "throttled", nothingWritten: true },
  );
}

/** Requires that the ancestors are as they were when the tree was found to stay a tree. */
async function ancestorChecks(
  context: RecordContext,
  id: string,
  parentId: string,
): Promise<Write[]> {
  const { store, namespaceId } = context;
  const missing = await checkAncestry(context, id, parentId);
  if (missing === parentId) throw new EntityNotFoundError(parentId);
  const checks: Write[] = [];
  let ancestor: string | undefined = parentId;
  while (ancestor !== undefined && ancestor !== missing) {
    const key = entityKey(namespaceId, ancestor);
    const record: Item | undefined = await store.get(key, { consistent: true });
    if (record === undefined) break;
    checks.push({ check: key, condition: asRead(record) });
    ancestor = textAt(record, "parent_id");
  }
  if (missing === undefined) return checks;
  return [...checks, { check: entityKey(namespaceId, missing), condition: [ITEM_ABSENT] }];
}

/** Passes while the record has not been moved since it was read. */
function asRead(record: Item): Condition {
  const generation = numberAt(record, GENERATION);
  return [
    ITEM_EXISTS,
    generation === undefined
      ? { is: "absent", name: GENERATION }
      : { is: "=", name: GENERATION, value: generation },
  ];
}

function parentChange(
  namespaceId: string,
  id: string,
  parentId: string | undefined,
  generation: number,
): { set: Record<string, Value>; remove: string[] } {
  const set = { parent_id: parentId ?? null, [GENERATION]: generation };
  if (parentId === undefined) return { set, remove: ["GSI1PK", "GSI1SK"] };
  const index = { GSI1PK: childrenPartition(namespaceId, parentId), GSI1SK: `CHILD#${id}` };
  return { set: { ...set, ...index }, remove: [] };
}
