/** Disturbances of a world besides calls, crashes and new limits; worlds choose them. */

import type { Random } from "@zae-limiter/limiter/base/random.ts";
import {
  EntityExistsError,
  RateLimiterUnavailable,
} from "@zae-limiter/limiter/domain/errors/errors.ts";
import { seededRandom } from "@zae-limiter/testing/seeded-random.ts";
import { between } from "../draw.ts";
import { nextEdgeMs } from "./edges.ts";
import { ForeignClient } from "./foreign-client.ts";
import { Housekeeper } from "./housekeeper.ts";
import { startOperators } from "./operators/operators.ts";
import type { Parameters } from "./parameters.ts";
import type { PlannedCall } from "./planned-call.ts";
import { entityAt, RESOURCE } from "./population.ts";
import type { Staff } from "./staff.ts";
import type { World } from "./world.ts";

/** Pause before the next search for an edge when none was found. */
const LOOK_AGAIN_MS = 300;
/** Past the turn of a millisecond, whatever the addition of times rounds to. */
const SURELY_MS = 0.01;
/** A bucket may be doubled once a second. */
const DOUBLING_MS_MIN = 1500;
/** How long a bucket keeps its shards where they change all the time, on average. */
const RESHARD_MS = 500;

/** Draws a call of an entity, with these fields instead of its own. */
export type DrawCall = (fields: Partial<PlannedCall>) => PlannedCall;

export class Disturbances {
  readonly #world: World;
  readonly #staff: Staff;
  readonly #parameters: Parameters;
  readonly #draw: DrawCall;
  readonly #random: Random;

  constructor(world: World, staff: Staff, parameters: Parameters, draw: DrawCall) {
    this.#world = world;
    this.#staff = staff;
    this.#parameters = parameters;
    this.#draw = draw;
    this.#random = seededRandom(parameters.seed, "disturbances");
  }

  /** Plans everything until `endMs`. */
  start(endMs: number): void {
    const { edges, foreignDoublings, latecomers, reshards } = this.#parameters;
    if (reshards) this.#planReshard(new Housekeeper(this.#world.table.process()), endMs);
    if (edges) this.#planEdge(endMs);
    if (foreignDoublings) this.#planDoubling(new ForeignClient(this.#foreignStore()), endMs);
    if (latecomers) this.#planLatecomers(endMs);
    startOperators(this.#world, this.#staff, this.#parameters, endMs).catch((error: unknown) =>
      this.#world.fail(error),
    );
  }

  #foreignStore() {
    return this.#world.table.process().store;
  }

  /** Lets all processes ask at the last millisecond before a token is whole. */
  #planEdge(endMs: number): void {
    const { time } = this.#world;
    const nowMs = Math.ceil(time.nowMs);
    const image = this.#world.newest(`${entityAt(0)} ${RESOURCE}`)?.image;
    const edgeMs = image === undefined ? undefined : nextEdgeMs(image, nowMs);
    if (nowMs > endMs) return;
    if (edgeMs === undefined) {
      time.after(LOOK_AGAIN_MS, () => this.#planEdge(endMs));
      return;
    }
    time.after(edgeMs + SURELY_MS - time.nowMs, () => {
      for (let started = 0; started <= this.#parameters.processes; started += 1) {
        this.#staff.start(this.#draw({ entityId: entityAt(0), consume: { a: 1 } }));
      }
      time.after(LOOK_AGAIN_MS * (1 + 3 * this.#random()), () => this.#planEdge(endMs));
    });
  }

  #planDoubling(client: ForeignClient, endMs: number): void {
    const { time } = this.#world;
    const pauseMs = DOUBLING_MS_MIN * (1 + this.#random());
    if (time.nowMs + pauseMs > endMs) return;
    time.after(pauseMs, () => {
      const entityId = entityAt(between(this.#random, 0, this.#parameters.entities - 1));
      const found = this.#world.newest(`${entityId} ${RESOURCE}`);
      if (found !== undefined) {
        client.double(found.PK, found.image).catch((error: unknown) => this.#world.fail(error));
      }
      this.#planDoubling(client, endMs);
    });
  }

  #planReshard(housekeeper: Housekeeper, endMs: number): void {
    const { time } = this.#world;
    const pauseMs = RESHARD_MS * (0.2 + this.#random());
    if (time.nowMs + pauseMs > endMs) return;
    time.after(pauseMs, () => {
      if (this.#staff.size === 0) return this.#planReshard(housekeeper, endMs);
      const { namespaceId } = this.#staff.first.limiter.repository;
      const entityId = entityAt(between(this.#random, 0, this.#parameters.entities - 1));
      const work = this.#random() < 0.5 ? "split" : "merge";
      housekeeper
        .change(work, { namespaceId, entityId, resource: RESOURCE })
        .catch((error: unknown) => this.#world.fail(error));
      this.#planReshard(housekeeper, endMs);
    });
  }

  /** Entities that are in use get a record, with a parent to cascade to; the first has none. */
  #planLatecomers(endMs: number): void {
    const { entities } = this.#parameters;
    const { time } = this.#world;
    for (let position = 1; position < entities; position += 1) {
      const parentId = entityAt(between(this.#random, 0, position - 1));
      const afterMs = (endMs - time.nowMs) * this.#random();
      time.after(afterMs, () => {
        this.#create(entityAt(position), parentId).catch((error: unknown) =>
          this.#world.fail(error),
        );
      });
    }
  }

  async #create(id: string, parentId: string): Promise<void> {
    const { links, time, log } = this.#world;
    const { entities } = this.#staff.first.limiter.repository;
    log.add(`creates ${id} below ${parentId}`);
    const done = links.begin(id, parentId, () => time.nowMs);
    for (;;) {
      try {
        // Any of them may come first, so a parent may be missing for a while.
        await entities.create({ id, parentId, cascade: true, allowMissingParent: true });
        return done();
      } catch (error) {
        // It has been created, and its buckets may not know: both links count until the end.
        if (error instanceof EntityExistsError) return;
        if (!(error instanceof RateLimiterUnavailable)) throw error;
      }
    }
  }
}
