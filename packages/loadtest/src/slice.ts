/** The work of one worker in one interval of a run. */

import { entryOf } from "@zae-limiter/limiter/base/entry.ts";
import type { StoreCall } from "@zae-limiter/limiter/storage/item-store.ts";
import { Tally, type TallyWire } from "./tally.ts";

/** Requests to the store, with the capacity they used. */
export interface StoreWork {
  calls: number;
  readUnits: number;
  writeUnits: number;
}

/** A slice as JSON, from a worker to the coordinator. */
export interface SliceWire {
  readonly interval: number;
  readonly users: number;
  readonly lateMsMax: number;
  readonly cpuMs: number;
  readonly store: StoreWork;
  readonly tallies: Readonly<Record<string, TallyWire>>;
}

/** Collects what happens until the interval is over. */
export class Slice {
  readonly tallies = new Map<string, Tally>();
  readonly store: StoreWork = { calls: 0, readUnits: 0, writeUnits: 0 };
  /** Users at work at the end of the interval; in an open model, tasks at work. */
  users = 0;
  /** How late the latest task of an open model started. */
  lateMsMax = 0;
  cpuMs = 0;

  /** The number of the interval, from 0. */
  constructor(readonly interval: number) {}

  tally(userClass: string): Tally {
    return entryOf(this.tallies, userClass, () => new Tally());
  }

  called({ readUnits, writeUnits }: StoreCall): void {
    this.store.calls += 1;
    this.store.readUnits += readUnits;
    this.store.writeUnits += writeUnits;
  }

  /** Adds what another worker, or an earlier interval, did. */
  add(other: Slice): void {
    for (const [userClass, tally] of other.tallies) this.tally(userClass).add(tally);
    this.store.calls += other.store.calls;
    this.store.readUnits += other.store.readUnits;
    this.store.writeUnits += other.store.writeUnits;
    this.lateMsMax = Math.max(this.lateMsMax, other.lateMsMax);
    this.cpuMs += other.cpuMs;
  }

  total(): Tally {
    const total = new Tally();
    for (const tally of this.tallies.values()) total.add(tally);
    return total;
  }

  toWire(): SliceWire {
    const { interval, users, lateMsMax, cpuMs, store } = this;
    const tallies = [...this.tallies].map(([name, tally]) => [name, tally.toWire()] as const);
    return { interval, users, lateMsMax, cpuMs, store, tallies: Object.fromEntries(tallies) };
  }

  static fromWire(wire: SliceWire): Slice {
    const slice = new Slice(wire.interval);
    for (const [name, tally] of Object.entries(wire.tallies)) {
      slice.tally(name).add(Tally.fromWire(tally));
    }
    Object.assign(slice.store, wire.store);
    slice.users = wire.users;
    slice.lateMsMax = wire.lateMsMax;
    slice.cpuMs = wire.cpuMs;
    return slice;
  }
}
