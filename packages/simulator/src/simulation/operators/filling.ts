/** Resets and tops up buckets; some calls are made twice, under the same key. */

import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import type { PlannedOperation } from "../../checkers/operations.ts";
import { between, pick } from "../../draw.ts";
import { entityAt } from "../population.ts";
import { type OperatorParts, untilMade } from "./operator.ts";

const TOP_UP_MAX = 50;

/** Fills buckets under keys that count up. */
export function filling(): (parts: OperatorParts) => Promise<void> {
  let keys = 0;
  return async (parts) => {
    keys += 1;
    const { random } = parts;
    const entityId = entityAt(between(random, 0, parts.entities - 1));
    const resource = pick(random, parts.resources);
    const planned: PlannedOperation = {
      key: `key-${keys}`,
      kind: random() < 0.4 ? "reset" : "top_up",
      bucket: `${entityId} ${resource}`,
      amounts: drawAmounts(parts),
    };
    parts.world.operations.plan(planned);
    const callers = random() < 0.5 ? 1 : 2;
    // Two calls of one key, by any two processes, at the same time: one of them makes it.
    await Promise.all(Array.from({ length: callers }, () => fill(parts, planned)));
    if (random() < 0.3) await fill(parts, planned);
  };
}

function drawAmounts({ random, limitNames }: OperatorParts): Record<string, number> {
  const names = limitNames.filter((name) => name === "a" || random() < 0.5);
  return Object.fromEntries(names.map((name) => [name, between(random, 1, TOP_UP_MAX)]));
}

async function fill({ world, caller }: OperatorParts, planned: PlannedOperation): Promise<void> {
  const { id, limiter } = caller();
  const { buckets } = limiter.repository;
  const [entityId = "", resource = ""] = planned.bucket.split(" ");
  const target = { entityId, resource, idempotencyKey: planned.key };
  world.log.add(`p${id} ${planned.kind} of ${planned.bucket} as ${planned.key}`);
  try {
    const result = await untilMade(world, () =>
      planned.kind === "reset"
        ? buckets.reset(target)
        : buckets.topUp({ ...target, amounts: planned.amounts }),
    );
    world.operations.answered(planned.key, result);
    world.log.add(`p${id} ${planned.key} is made`);
  } catch (error) {
    // Other limits were stored meanwhile, and one that it names is gone.
    if (!(error instanceof ValidationError)) throw error;
    world.log.add(`p${id} ${planned.key}: ${error.message}`);
  }
}
