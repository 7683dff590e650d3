/** Entities as JSON and as a table. */

import type { Entity } from "../../domain/entity.ts";
import type { Shape } from "../command.ts";
import { table } from "../table.ts";

export const ENTITY_SHAPE: Shape = {
  id: "text",
  name: "text",
  parent_id: "text | null",
  cascade: "boolean",
  metadata: "object",
  created_at: "text | null",
};

export function entityJson(entity: Entity) {
  return {
    id: entity.id,
    name: entity.name ?? entity.id,
    parent_id: entity.parentId ?? null,
    cascade: entity.cascade,
    metadata: entity.metadata,
    created_at: entity.createdAt ?? null,
  };
}

export function entityTable(
  entities: readonly Entity[],
  paint: (title: string) => string,
): Promise<string> {
  const columns = ["ENTITY", "NAME", "PARENT", "CASCADE", "CREATED"].map((title) => ({ title }));
  const rows = entities.map((entity) => [
    entity.id,
    entity.name ?? entity.id,
    entity.parentId ?? "-",
    entity.cascade ? "yes" : "no",
    entity.createdAt ?? "-",
  ]);
  return table(columns, rows, paint);
}
