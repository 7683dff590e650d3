/** Switches entities and resources off and on, lets them bypass their limits, clears switches. */

import type { SwitchPlace, SwitchState } from "../../checkers/switch-history.ts";
import { between, pick } from "../../draw.ts";
import { entityAt } from "../population.ts";
import { type OperatorParts, untilMade } from "./operator.ts";

const VALUES: readonly (SwitchState | undefined)[] = [
  ...(["disabled", "disabled", "bypass", "bypass", "enabled"] as const),
  ...[undefined, undefined, undefined],
];

export async function switchSome(parts: OperatorParts): Promise<void> {
  const { world, random, caller } = parts;
  const place = drawPlace(parts);
  const value = pick(random, VALUES);
  const { id, limiter } = caller();
  const { limits } = limiter.repository;
  const shown = JSON.stringify(place);
  world.log.add(`p${id} switches ${shown} to ${value ?? "nothing"}`);
  const done = world.switches.begin(place, value, id, () => world.time.nowMs);
  await untilMade(world, () => {
    if (value === "disabled") return limits.disable(place);
    if (value === "bypass") return limits.bypass(place);
    return value === "enabled" ? limits.enable(place) : limits.clear(place);
  });
  done();
  world.log.add(`p${id} has switched ${shown}`);
}

/** Draws the place of a switch, mostly of one entity: a resource that is off grants nothing. */
function drawPlace({ random, entities, resources }: OperatorParts): SwitchPlace {
  const entityId = entityAt(between(random, 0, entities - 1));
  const resource = pick(random, resources);
  const kind = random();
  if (kind < 0.2) return { resource };
  return kind < 0.5 ? { entityId } : { entityId, resource };
}
