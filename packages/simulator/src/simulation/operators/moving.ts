/** Moves entities to other parents, or to none. */

import type { LinkHistory } from "../../checkers/links.ts";
import { between, pick } from "../../draw.ts";
import { entityAt } from "../population.ts";
import { type OperatorParts, untilMade } from "./operator.ts";

export async function moveSome({ world, random, caller, entities }: OperatorParts): Promise<void> {
  const { links, time, log } = world;
  const entityId = entityAt(between(random, 0, entities - 1));
  const others = Array.from({ length: entities }, (_, position) => entityAt(position));
  const allowed = others.filter((other) => !isBelow(links, other, entityId));
  const parentId = random() < 0.2 ? undefined : pick(random, [undefined, ...allowed]);
  if (parentId === links.parentOf(entityId)) return;
  const { id, limiter } = caller();
  log.add(`p${id} moves ${entityId} below ${parentId ?? "nothing"}`);
  const done = links.begin(entityId, parentId, () => time.nowMs);
  await untilMade(world, () => limiter.repository.entities.setParent(entityId, parentId ?? null));
  done();
  log.add(`p${id} has moved ${entityId}`);
}

/** Whether an entity is another one, or is below it. */
function isBelow(links: LinkHistory, entityId: string, ancestor: string): boolean {
  for (let at: string | undefined = entityId; at !== undefined; at = links.parentOf(at)) {
    if (at === ancestor) return true;
  }
  return false;
}
