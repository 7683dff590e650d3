/** How the entity of a key is found, and what unknown keys may cost. */

import { type FoundKey, KeyLookup } from "@zae-limiter/gateway/key-lookup.ts";
import { createKey, HINT_LENGTH, idOf, listKeys } from "@zae-limiter/gateway/keys.ts";
import { randomToken, systemRandom } from "@zae-limiter/limiter/base/random.ts";
import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import type { Key } from "@zae-limiter/limiter/storage/item.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

const ADDRESS = "192.0.2.1";
const SECRET = "gateway/key-secret";

let nowMs: number;
let repository: Repository;
let lookup: KeyLookup;
/** The partitions that single reads asked for. */
let reads: string[];
/** Answers of reads that the test holds up. */
let held: (() => void)[] | undefined;
let failure: Error | undefined;

/** A store in memory whose single reads are noted, held up or broken. */
function watchedStore(): ItemStore {
  const items = new MemoryItemStore();
  return new Proxy<ItemStore>(items, {
    get: (_, operation: keyof ItemStore) => {
      if (operation !== "get") return items[operation]?.bind(items) as unknown;
      return async (key: Key) => {
        reads.push(key.PK);
        if (failure !== undefined) throw failure;
        await new Promise<void>((resolve) => {
          if (held === undefined) resolve();
          else held.push(resolve);
        });
        return items.get(key);
      };
    },
  });
}

beforeEach(async () => {
  nowMs = Date.now();
  [reads, held, failure] = [[], undefined, undefined];
  repository = await Repository.over(watchedStore(), { clock: () => nowMs });
  lookup = new KeyLookup(repository);
});

afterEach(() => repository.close());

/** A key as earlier versions made it, without a checksum. */
async function olderKey(entityId = "team-a"): Promise<string> {
  const key = inventedKey();
  await repository.entities.ensure({ id: entityId });
  const metadata = { hint: key.slice(0, HINT_LENGTH) };
  await repository.entities.create({ id: idOf(key), parentId: entityId, metadata });
  return key;
}

/** A text that has the form of an older key. */
function inventedKey(): string {
  return `zael-${randomToken(systemRandom, 32)}`;
}

const newKey = async (more = {}) => (await createKey(repository, "team-a", undefined, more)).key;
const entityOf = (found: FoundKey | string) => (typeof found === "string" ? found : found.entityId);
const find = async (key: string, address = ADDRESS) => entityOf(await lookup.find(key, address));
const readsOf = (part: string) => reads.filter((partition) => partition.includes(part)).length;
const keyReads = () => readsOf("gateway-key:");
/** Until everything that waits for nothing has happened. */
const idle = () => new Promise((resolve) => setImmediate(resolve));

describe("keys with a checksum", () => {
  test("a new key is found with its id, hint, name and entity", async () => {
    const key = await newKey({ name: "laptop" });
    expect(key).toMatch(/^zael-[A-Za-z0-9_-]{51}$/);
    const expected = { id: idOf(key), hint: key.slice(0, 10), name: "laptop" };
    expect(await lookup.find(key, ADDRESS)).toEqual({
      ...expected,
      entityId: "team-a",
      isDisabled: false,
    });
    expect(await listKeys(repository)).toMatchObject([expected]);
  });

  test("a key with a wrong checksum is unknown, and the store is not asked for it", async () => {
    const key = await newKey();
    expect(await find(key)).toBe("team-a");
    reads.splice(0);
    const last = key.at(-1) === "A" ? "B" : "A";
    expect(await find(key.slice(0, -1) + last)).toBe("unknown");
    const other = key[5] === "A" ? "B" : "A";
    expect(await find(`zael-${other}${key.slice(6)}`)).toBe("unknown");
    for (let at = 0; at < 500; at += 1) {
      expect(await find(`zael-${randomToken(systemRandom, 32)}AAAAAAAA`)).toBe("unknown");
    }
    expect(reads).toEqual([]);
  });

  test("a text that cannot be a key is unknown, and the store is not asked", async () => {
    const key = await newKey();
    reads.splice(0);
    for (const text of ["", "zael-", idOf(key), `${key}A`, ` ${key}`, key.slice(0, -1), "x\ny"]) {
      expect(await find(text)).toBe("unknown");
    }
    expect(reads).toEqual([]);
  });

  test("two that make the first key at once use one secret", async () => {
    const keys = await Promise.all([newKey(), newKey(), newKey()]);
    for (const key of keys) expect(await find(key)).toBe("team-a");
  });

  test("a gateway that started before the first key reads its secret, once a second at most", async () => {
    const invented = `${inventedKey()}AAAAAAAA`;
    expect(await find(invented)).toBe("unknown");
    expect(readsOf(SECRET)).toBe(1);
    // Without a secret it is a key that nothing speaks for.
    expect(keyReads()).toBe(1);
    for (let at = 0; at < 10; at += 1) await find(`${inventedKey()}AAAAAAAA`);
    expect(readsOf(SECRET)).toBe(1);
    const key = await newKey();
    reads.splice(0);
    // The secret is not known yet, and the key is valid all the same.
    expect(await find(key)).toBe("team-a");
    expect(readsOf(SECRET)).toBe(0);
    nowMs += 1000;
    expect(await find(`${inventedKey()}AAAAAAAA`)).toBe("unknown");
    expect(await find(`${inventedKey()}AAAAAAAA`)).toBe("unknown");
    expect([readsOf(SECRET), keyReads()]).toEqual([1, 1]);
  });

  test("the key and the secret are in no list and in no audit log", async () => {
    const key = await newKey({ name: "laptop" });
    const secret = await repository[INTERNALS].notes.get(SECRET);
    const { entities } = await repository.entities.list();
    const shown = JSON.stringify([
      await listKeys(repository),
      entities,
      await repository.audit.list(idOf(key)),
      await repository.audit.list("team-a"),
    ]);
    expect(shown).toContain("laptop");
    expect(shown).not.toContain(key.slice(5, -8));
    expect(shown).not.toContain(key.slice(-8));
    expect(shown).not.toContain(secret);
  });

  test.each([
    ["zael-abc", "one that begins like a key"],
    ["gateway-key:1", "one that begins like a key"],
    [" x", '" x"'],
    ["x".repeat(65), "xxx"],
  ])("a key cannot be named %j", async (name, came) => {
    const refused = newKey({ name });
    await expect(refused).rejects.toMatchObject({ field: "name" });
    await expect(refused).rejects.toThrow(came);
    await expect(refused).rejects.not.toThrow("zael-abc");
    expect(await listKeys(repository)).toEqual([]);
  });
});

describe("keys of earlier versions", () => {
  test("a key without a checksum stays valid", async () => {
    const key = await olderKey();
    await newKey();
    expect(await find(key)).toBe("team-a");
  });

  test("lookups that find nothing are bounded per client address, and end at once beyond it", async () => {
    const valid = await olderKey();
    for (let at = 0; at < 30; at += 1) expect(await find(inventedKey())).toBe("unknown");
    reads.splice(0);
    for (let at = 0; at < 100; at += 1) expect(await find(inventedKey())).toBe("too many");
    expect(reads).toEqual([]);
    expect(await find(valid)).toBe("too many");
    expect(await find(valid, "192.0.2.2")).toBe("team-a");
    nowMs += 60_000;
    expect(await find(inventedKey())).toBe("unknown");
  });

  test("lookups that find a key are not counted", async () => {
    for (let at = 0; at < 40; at += 1) expect(await find(await olderKey())).toBe("team-a");
    expect(await find(inventedKey())).toBe("unknown");
  });

  test("an IPv6 client counts with its subnet, and an IPv4 client however it is written", async () => {
    for (let at = 0; at < 30; at += 1) {
      expect(await find(inventedKey(), `2001:db8:0:12${at + 10}::${at}`)).toBe("unknown");
      expect(await find(inventedKey(), at % 2 ? "192.0.2.9" : "::ffff:192.0.2.9")).toBe("unknown");
    }
    expect(await find(inventedKey(), "2001:db8:0:12ff::1")).toBe("too many");
    expect(await find(inventedKey(), "192.0.2.9")).toBe("too many");
    expect(await find(inventedKey(), "2001:db8:0:1300::1")).toBe("unknown");
  });

  test("the same unknown key is read once in half a minute", async () => {
    const invented = inventedKey();
    for (let at = 0; at < 100; at += 1) expect(await find(invented)).toBe("unknown");
    expect(keyReads()).toBe(1);
    nowMs += 30_000;
    expect(await find(invented)).toBe("unknown");
    expect(keyReads()).toBe(2);
  });

  test("a key that was valid here is exempt, also when it has to be read again", async () => {
    const key = await olderKey();
    expect(await find(key)).toBe("team-a");
    for (let at = 0; at < 40; at += 1) await find(inventedKey());
    expect(await find(inventedKey())).toBe("too many");
    nowMs += 30_000;
    expect(await find(key)).toBe("team-a");
  });
});

describe("lookups under way", () => {
  test("only a few unknown keys are read at a time, none waits, and known keys pass them", async () => {
    const [older, fresh] = [await olderKey(), await newKey()];
    expect([await find(older), await find(fresh)]).toEqual(["team-a", "team-a"]);
    const another = await newKey();
    nowMs += 30_000;
    const waiting: (() => void)[] = [];
    held = waiting;
    const asked = Array.from({ length: 50 }, (_, at) => find(inventedKey(), `192.0.2.${at}`));
    await idle();
    expect(keyReads()).toBe(2 + 16);
    held = undefined;
    // While sixteen hang, keys that were valid and keys with the right checksum are found.
    expect([await find(older), await find(fresh), await find(another)]).toEqual([
      "team-a",
      "team-a",
      "team-a",
    ]);
    for (const answer of waiting) answer();
    const answers = await Promise.all(asked);
    expect(answers.filter((answer) => answer === "too many")).toHaveLength(34);
    expect(answers.filter((answer) => answer === "unknown")).toHaveLength(16);
    expect(await find(inventedKey(), "198.51.100.1")).toBe("unknown");
  });

  test("many calls with one key share its lookup", async () => {
    const [older, fresh] = [await olderKey(), await newKey()];
    for (const key of [older, fresh]) {
      reads.splice(0);
      const answers = await Promise.all(Array.from({ length: 50 }, () => find(key)));
      expect(new Set(answers)).toEqual(new Set(["team-a"]));
      expect(keyReads()).toBe(1);
    }
  });

  test("a store that fails is an error of every lookup, and counts against no address", async () => {
    const [older, fresh] = [await olderKey(), await newKey()];
    const context = { stackName: "limits", reason: "network" } as const;
    failure = new RateLimiterUnavailable("connect ECONNREFUSED", context);
    for (let at = 0; at < 40; at += 1) {
      await expect(find(older)).rejects.toBe(failure);
      await expect(find(fresh)).rejects.toBe(failure);
    }
    failure = undefined;
    expect([await find(older), await find(fresh)]).toEqual(["team-a", "team-a"]);
  });
});

describe("the end of a key", () => {
  test("a revoked key is unknown after half a minute at most", async () => {
    const key = await newKey();
    expect(await find(key)).toBe("team-a");
    await repository.entities.delete(idOf(key));
    nowMs += 29_999;
    expect(await find(key)).toBe("team-a");
    nowMs += 1;
    expect(await find(key)).toBe("unknown");
    expect(await find(key)).toBe("unknown");
  });

  test("a key is unknown from the millisecond on at which it expires", async () => {
    const { key } = await createKey(repository, "team-a", nowMs + 10_000);
    expect(await find(key)).toBe("team-a");
    nowMs += 9999;
    expect(await find(key)).toBe("team-a");
    nowMs += 1;
    expect(await find(key)).toBe("unknown");
    nowMs += 30_000;
    expect(await find(key)).toBe("unknown");
  });

  test("a key of a deleted entity is unknown", async () => {
    const key = await newKey();
    await repository.entities.delete("team-a");
    expect(await find(key)).toBe("unknown");
  });
});

describe("entities that are switched off", () => {
  const isDisabled = async (key: string) => {
    nowMs += 30_000;
    const found = await lookup.find(key, ADDRESS);
    return typeof found === "string" ? found : found.isDisabled;
  };

  test("a key says that its entity is switched off, and on again", async () => {
    const key = await newKey();
    const { limits } = repository;
    await limits.disable({ entityId: "team-a" });
    expect(await isDisabled(key)).toBe(true);
    await limits.enable({ entityId: "team-a" });
    expect(await isDisabled(key)).toBe(false);
    await limits.disable({ entityId: "team-a", resource: "gpt-4" });
    expect(await isDisabled(key)).toBe(false);
  });

  test("an entity that is switched on for one resource is not switched off", async () => {
    const key = await newKey();
    const { limits } = repository;
    await limits.disable({ entityId: "team-a" });
    await limits.setEntity("team-a", ["rpm:5"], { resource: "gpt-3" });
    expect(await isDisabled(key)).toBe(true);
    await limits.enable({ entityId: "team-a", resource: "gpt-4" });
    expect(await isDisabled(key)).toBe(false);
    await limits.bypass({ entityId: "team-a", resource: "gpt-4" });
    expect(await isDisabled(key)).toBe(false);
    await limits.clear({ entityId: "team-a", resource: "gpt-4" });
    expect(await isDisabled(key)).toBe(true);
  });
});
