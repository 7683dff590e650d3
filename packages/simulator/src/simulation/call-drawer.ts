/** Draws calls: of which entity, what they consume and hold, and what they do with their lease. */

import type { Random } from "@zae-limiter/limiter/base/random.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { between, pick } from "../draw.ts";
import type { Parameters } from "./parameters.ts";
import type { PlannedCall, PlannedPart, Tokens } from "./planned-call.ts";
import { ancestorsOf, entityAt, RESOURCE, resourcesOf } from "./population.ts";

export class CallDrawer {
  readonly #parameters: Parameters;
  readonly #random: Random;
  #calls = 0;

  constructor(parameters: Parameters, random: Random) {
    this.#parameters = parameters;
    this.#random = random;
  }

  /** Draws the next call, with these fields instead of its own. */
  draw(fields: Partial<PlannedCall> = {}): PlannedCall {
    const { entities, family, amountMax, adjustMax, deeds, limits, totals } = this.#parameters;
    const random = this.#random;
    this.#calls += 1;
    const entityId = entityAt(between(random, 0, entities - 1));
    const deed = pick(random, deeds);
    const names = namesOf(limits);
    const consume: Record<string, number> = {};
    const deltas: Record<string, number> = {};
    for (const name of names) {
      if (name === "a" || random() < 0.7) consume[name] = between(random, 1, amountMax);
      deltas[name] = between(random, -amountMax, adjustMax);
    }
    if (Object.keys(consume).length === 0) consume[pick(random, names)] = 1;
    const also = this.#drawOthers(names, entityId);
    const override = deed === "override" ? limits.map((limit) => `${limit}`) : undefined;
    return {
      number: this.#calls,
      entityId,
      ancestors: this.#ancestorsOf(entityId, family),
      deed,
      consume,
      also,
      totals: namesOf(totals),
      deltas,
      limits: override,
      thinkMs: random() * random() * this.#parameters.thinkMs,
      slots: this.#drawSlots(),
      ...fields,
    };
  }

  #drawSlots(): Tokens {
    const { slots } = this.#parameters;
    return Object.fromEntries(
      slots.map((text) => {
        const { name, capacity } = Limit.parse(text);
        return [name, Math.min(capacity, pick(this.#random, [1, 1, 1, 2]))] as const;
      }),
    );
  }

  /** Draws the other parts of a call, in any order; often there are none. */
  #drawOthers(names: readonly string[], own: string): PlannedPart[] {
    const parts = this.#drawResources(names);
    const { others, entities, family } = this.#parameters;
    if (!others) return parts;
    const random = this.#random;
    return parts.concat({ resource: RESOURCE, consume: { a: 1 } }).flatMap((part) => {
      const entityId = entityAt(between(random, 0, entities - 1));
      // The call has the first part itself, and each resource of an entity comes once.
      if (part.resource === RESOURCE && entityId === own) return [];
      return { ...part, entityId, ancestors: this.#ancestorsOf(entityId, family) };
    });
  }

  #drawResources(names: readonly string[]): PlannedPart[] {
    const { resources, amountMax } = this.#parameters;
    if (resources === 1) return [];
    const random = this.#random;
    const [, ...others] = resourcesOf(this.#parameters);
    const chosen = others.filter(() => random() < 0.6);
    if (random() < 0.5) chosen.reverse();
    return chosen.map((resource) => {
      const used = names.filter((name) => name === "a" || random() < 0.5);
      const amounts = used.map((name) => [name, between(random, 1, amountMax)] as const);
      const consume: Tokens = Object.fromEntries(amounts);
      return { resource, consume };
    });
  }

  /** Lists the possible ancestors: all others, if entities are moved or created late. */
  #ancestorsOf(entityId: string, family: Parameters["family"]): readonly string[] {
    const { entities, operators, latecomers } = this.#parameters;
    if (!latecomers && !operators.includes("move")) return ancestorsOf(entityId, family);
    const all = Array.from({ length: entities }, (_, position) => entityAt(position));
    return all.filter((other) => other !== entityId);
  }
}

function namesOf(limits: readonly string[]): string[] {
  return limits.map((limit) => limit.slice(0, limit.indexOf(":")));
}
