/** Who there is: entities, whom they charge, and the name of what they use. */

import type { Family, Parameters } from "./parameters.ts";

export const RESOURCE = "api";

export function entityAt(position: number): string {
  return `e${position}`;
}

/** Whom an entity charges besides itself, in order. */
export function ancestorsOf(entityId: string, family: Family): string[] {
  const position = Number(entityId.slice(1));
  if (family === "none" || position === 0) return [];
  if (family === "star") return [entityAt(0)];
  return Array.from({ length: position }, (_, at) => entityAt(position - 1 - at));
}

/** The arguments that create everybody, ancestors first. */
export function entitiesOf({ entities, family }: Pick<Parameters, "entities" | "family">) {
  return Array.from({ length: entities }, (_, position) => {
    const id = entityAt(position);
    const [parentId] = ancestorsOf(id, family);
    return parentId === undefined ? { id } : { id, parentId, cascade: true };
  });
}
