/** The entities of a run, their hierarchy and their resource. */

import type { Family, Parameters } from "./parameters.ts";

export const RESOURCE = "api";

export function entityAt(position: number): string {
  return `e${position}`;
}

/** Returns the ancestors that an entity cascades to, in order. */
export function ancestorsOf(entityId: string, family: Family): string[] {
  const position = Number(entityId.slice(1));
  if (family === "none" || position === 0) return [];
  if (family === "star") return [entityAt(0)];
  return Array.from({ length: position }, (_, at) => entityAt(position - 1 - at));
}

/** Returns the names of the resources that entities use, the main one first. */
export function resourcesOf({ resources }: Pick<Parameters, "resources">): string[] {
  return [RESOURCE, ...Array.from({ length: resources - 1 }, (_, at) => `${RESOURCE}${at + 2}`)];
}

/** Returns the arguments that create all entities, ancestors first. Movable ones cascade. */
export function entitiesOf(parameters: Pick<Parameters, "entities" | "family" | "operators">) {
  const { entities, family, operators } = parameters;
  const moves = operators.includes("move");
  return Array.from({ length: entities }, (_, position) => {
    const id = entityAt(position);
    const [parentId] = ancestorsOf(id, family);
    if (parentId === undefined) return moves ? { id, cascade: true } : { id };
    return { id, parentId, cascade: true };
  });
}
