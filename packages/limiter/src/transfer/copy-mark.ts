/**
 * The note in the target that a copy is not at its end. The same copy may go on while it is there;
 * without it, a namespace that has data is not copied to.
 */

import type { JsonValue } from "../domain/json.ts";
import { noteKey } from "../records/keys.ts";
import { INTERNALS } from "../repository/internals.ts";
import type { Repository } from "../repository/repository.ts";

export const COPY_NOTE = "copy";

export interface CopyMark {
  /** The id of the namespace that is copied. */
  readonly fromId: string;
  /** The newest base time among the buckets that were copied; absent while a run is under way. */
  readonly newestMs?: number;
}

/** Returns the mark in a namespace; `undefined` where no copy is under way. */
export async function readMark(repository: Repository): Promise<CopyMark | undefined> {
  const value = await repository[INTERNALS].notes.get(COPY_NOTE);
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const { fromId, newestMs } = value as Readonly<Record<string, JsonValue>>;
  if (typeof fromId !== "string") return undefined;
  return typeof newestMs === "number" ? { fromId, newestMs } : { fromId };
}

export async function writeMark(repository: Repository, mark: CopyMark): Promise<void> {
  await repository[INTERNALS].notes.set(COPY_NOTE, { ...mark });
}

export async function removeMark(repository: Repository): Promise<void> {
  const { store, namespaceId } = repository[INTERNALS].records;
  await store.delete(noteKey(namespaceId, COPY_NOTE));
}
