/** A cluster of Redis or Valkey for tests: three primaries, and a replica of the first. */

import { setTimeout as pause } from "node:timers/promises";
import { Redis } from "ioredis";
import { RedisServer, type RedisServerOptions } from "./redis-server.ts";

const SLOTS = 16_384;
const PRIMARIES = 3;
const POLL_MS = 50;
const JOIN_TIMEOUT_MS = 30_000;
const SETTINGS = ["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"];

interface Node {
  readonly server: RedisServer;
  readonly admin: Redis;
  readonly id: string;
}

export class RedisCluster {
  readonly #nodes: readonly Node[];

  private constructor(nodes: readonly Node[]) {
    this.#nodes = nodes;
  }

  static async start(options: RedisServerOptions = {}): Promise<RedisCluster> {
    const nodes: Node[] = [];
    for (let at = 0; at <= PRIMARIES; at += 1) {
      const server = await RedisServer.start({ ...options, settings: SETTINGS });
      const admin = new Redis(server.url);
      nodes.push({ server, admin, id: String(await admin.call("CLUSTER", "MYID")) });
    }
    const cluster = new RedisCluster(nodes);
    try {
      await cluster.#join();
    } catch (error) {
      await cluster.remove();
      throw error;
    }
    return cluster;
  }

  get ports(): readonly number[] {
    return this.#nodes.map(({ server }) => server.port);
  }

  /** Moves the slot of a key to another primary, key by key, as operators do. */
  async moveSlotOf(key: string, during: () => Promise<void>): Promise<void> {
    const slot = String(await this.#first.admin.call("CLUSTER", "KEYSLOT", key));
    const from = this.#primaries[this.#primaryOf(Number(slot))] as Node;
    const to = this.#primaries[(this.#primaryOf(Number(slot)) + 1) % PRIMARIES] as Node;
    await to.admin.call("CLUSTER", "SETSLOT", slot, "IMPORTING", from.id);
    await from.admin.call("CLUSTER", "SETSLOT", slot, "MIGRATING", to.id);
    await during();
    for (;;) {
      const keys = (await from.admin.call("CLUSTER", "GETKEYSINSLOT", slot, "10")) as string[];
      if (keys.length === 0) break;
      const port = String(to.server.port);
      await from.admin.call("MIGRATE", "127.0.0.1", port, "", "0", "5000", "KEYS", ...keys);
    }
    for (const { admin } of [to, from]) {
      await admin.call("CLUSTER", "SETSLOT", slot, "NODE", to.id);
    }
  }

  /** Takes a slot from its primary for a while: no node serves it then. */
  async withoutSlotOf(key: string, during: () => Promise<void>): Promise<void> {
    const slot = String(await this.#first.admin.call("CLUSTER", "KEYSLOT", key));
    const { admin } = this.#primaries[this.#primaryOf(Number(slot))] as Node;
    const isUp = async () => /cluster_state:ok/.test(String(await admin.call("CLUSTER", "INFO")));
    await admin.call("CLUSTER", "DELSLOTS", slot);
    await until(async () => !(await isUp()));
    await during();
    await admin.call("CLUSTER", "ADDSLOTS", slot);
    await until(isUp);
  }

  /** Lets the replica take over from the first primary, or that one from it. */
  async failOver(): Promise<void> {
    const says = async ({ admin }: Node, what: RegExp) =>
      what.test(await admin.info("replication"));
    const last = this.#nodes[PRIMARIES] as Node;
    const replica = (await says(last, /role:master/)) ? this.#first : last;
    await until(() => says(replica, /master_link_status:up/));
    await replica.admin.call("CLUSTER", "FAILOVER");
    await until(() => says(replica, /role:master/));
  }

  /** Forgets the scripts of all nodes. */
  async forgetScripts(): Promise<void> {
    await Promise.all(this.#nodes.map(({ admin }) => admin.script("FLUSH")));
  }

  async remove(): Promise<void> {
    for (const { admin, server } of this.#nodes) {
      admin.disconnect();
      await server.remove();
    }
  }

  get #first(): Node {
    return this.#nodes[0] as Node;
  }

  get #primaries(): readonly Node[] {
    return this.#nodes.slice(0, PRIMARIES);
  }

  #primaryOf(slot: number): number {
    return Math.min(PRIMARIES - 1, Math.floor(slot / Math.floor(SLOTS / PRIMARIES)));
  }

  async #join(): Promise<void> {
    const size = Math.floor(SLOTS / PRIMARIES);
    for (const [at, { admin }] of this.#primaries.entries()) {
      const end = at === PRIMARIES - 1 ? SLOTS - 1 : (at + 1) * size - 1;
      const slots = Array.from({ length: end - at * size + 1 }, (_, n) => String(at * size + n));
      await admin.call("CLUSTER", "ADDSLOTS", ...slots);
    }
    for (const { server } of this.#nodes.slice(1)) {
      await this.#first.admin.call("CLUSTER", "MEET", "127.0.0.1", String(server.port));
    }
    const everyone = async () => {
      const answers = this.#nodes.map(({ admin }) => admin.call("CLUSTER", "NODES"));
      const texts = (await Promise.all(answers)) as string[];
      return texts.every((text) => text.trim().split("\n").length === this.#nodes.length);
    };
    await until(everyone);
    const replica = this.#nodes[PRIMARIES] as Node;
    await replica.admin.call("CLUSTER", "REPLICATE", this.#first.id);
    const isReady = async () => {
      const answers = this.#nodes.map(({ admin }) => admin.call("CLUSTER", "INFO"));
      const texts = (await Promise.all(answers)) as string[];
      const linked = /master_link_status:up/.test(await replica.admin.info("replication"));
      return linked && texts.every((text) => text.includes("cluster_state:ok"));
    };
    await until(isReady);
  }
}

/** Waits until something holds. */
async function until(holds: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + JOIN_TIMEOUT_MS;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error("The cluster does not come together");
    await pause(POLL_MS);
  }
}
