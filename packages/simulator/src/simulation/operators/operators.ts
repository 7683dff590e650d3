/** The operators of a run: what they change, how often, and from which process. */

import { seededRandom } from "@zae-limiter/testing/seeded-random.ts";
import { pick } from "../../draw.ts";
import type { Parameters } from "../parameters.ts";
import type { Caller } from "../planned-call.ts";
import { resourcesOf } from "../population.ts";
import type { Staff } from "../staff.ts";
import type { World } from "../world.ts";
import { filling } from "./filling.ts";
import { moveSome } from "./moving.ts";
import { type Operation, type OperatorParts, operate } from "./operator.ts";
import { switchSome } from "./switching.ts";

/** Kinds of operators. */
export type OperatorName = "switch" | "move" | "fill";

const OPERATIONS: Readonly<Record<OperatorName, () => Operation>> = {
  switch: () => switchSome,
  move: () => moveSome,
  fill: filling,
};

/** Starts each operator by itself, until `endMs`. */
export async function startOperators(
  world: World,
  staff: Staff,
  parameters: Parameters,
  endMs: number,
): Promise<void> {
  const { operators, operationsPerMinute, entities, limits, seed } = parameters;
  if (operators.length === 0) return;
  // Where processes crash, operators have one of their own, which does not.
  const own = parameters.crashesPerMinute > 0 ? await staff.operator() : undefined;
  for (const name of operators) {
    const random = seededRandom(seed, `operator ${name}`);
    const parts: OperatorParts = {
      world,
      random,
      caller: (): Caller => own ?? pick(random, staff.callers),
      entities,
      resources: resourcesOf(parameters),
      limitNames: limits.map((limit) => limit.slice(0, limit.indexOf(":"))),
    };
    operate(parts, OPERATIONS[name](), operationsPerMinute, endMs).catch((error: unknown) =>
      world.fail(error),
    );
  }
}
