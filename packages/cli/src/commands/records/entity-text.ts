/** Entities as JSON and as a table. */

import type { Entity } from "@zae-limiter/limiter/domain/entity.ts";
import type { SwitchState } from "@zae-limiter/limiter/records/config/switches.ts";
import type { Shape } from "../../frame/command.ts";
import { jsonOf } from "../../terminal/json.ts";
import { table } from "../../terminal/table.ts";

export const ENTITY_SHAPE = {
  id: "text",
  name: "text",
  parent_id: "text | null",
  cascade: "boolean",
  metadata: "object",
  created_at: "text | null",
} as const satisfies Shape;

export function entityJson(entity: Entity) {
  return jsonOf(ENTITY_SHAPE, { ...entity, name: entity.name ?? entity.id });
}

export function entityTable(
  entities: readonly Entity[],
  paint: (title: string) => string,
  states: readonly (SwitchState | undefined)[],
): Promise<string> {
  // Hardly any entity is switched off: the column is there only where one says something.
  const isSwitched = states.some((state) => state !== undefined);
  const titles = ["ENTITY", "NAME", "PARENT", "CASCADE", "CREATED"];
  const rows = entities.map((entity, at) => [
    entity.id,
    // An id of a gateway key has 76 characters: twice in a row would be too much to read.
    entity.name === undefined || entity.name === entity.id ? "-" : entity.name,
    entity.parentId ?? "-",
    entity.cascade ? "yes" : "no",
    entity.createdAt ?? "-",
    ...(isSwitched ? [states[at] ?? "-"] : []),
  ]);
  return table(isSwitched ? [...titles, "STATE"] : titles, rows, paint);
}
