/** A family of entities, each charging the next, and what they have left. */

import { milliOf } from "./balances.ts";
import type { Subject } from "./subject.ts";

export const RESOURCE = "api";
export const CHILD = { entityId: "child", resource: RESOURCE };

export async function family(subject: Subject, ...ids: string[]): Promise<void> {
  for (const [at, id] of [...ids.entries()].reverse()) {
    const parentId = ids[at + 1];
    await subject.repo.entities.create(
      parentId === undefined ? { id } : { id, parentId, cascade: true },
    );
  }
}

/** Tokens left of `rpm` for each; `-` where there is no bucket. */
export async function left(subject: Subject, ...ids: string[]): Promise<(number | "-")[]> {
  const found = await Promise.all(ids.map((id) => milliOf(subject, id, RESOURCE, "rpm")));
  return found.map((milli) => (milli === undefined ? "-" : milli.balance / 1000));
}

/** Reads the net consumption of `rpm` of each entity, in tokens. */
export async function used(subject: Subject, ...ids: string[]): Promise<(number | "-")[]> {
  const found = await Promise.all(ids.map((id) => milliOf(subject, id, RESOURCE, "rpm")));
  return found.map((milli) => (milli === undefined ? "-" : milli.consumed / 1000));
}
