/**
 * Tests of items that a tenant can forge with the policies of the template. IAM checks the leading
 * key of a write and not its index keys, so the forger writes through the gate as its policy
 * allows, and the victim reads through the gate as its own policy allows.
 */

import { stackParameters } from "@zae-limiter/aws/options/stack-parameters.ts";
import { resolveTemplate } from "@zae-limiter/aws/template/resolve.ts";
import { TABLE } from "@zae-limiter/aws/template/table.ts";
import { stackTemplate } from "@zae-limiter/aws/template/template.ts";
import { type LimiterWarning, RateLimiter, Repository } from "@zae-limiter/limiter/index.ts";
import { deleteTable } from "@zae-limiter/limiter/storage/dynamodb/create-table.ts";
import { DynamoItemStore } from "@zae-limiter/limiter/storage/dynamodb/item-store.ts";
import {
  arnOf,
  isAllowed,
  statementsOf,
  type Tags,
} from "@zae-limiter/test-support/aws/iam/evaluate.ts";
import { type Gate, openGate } from "@zae-limiter/test-support/aws/iam/gate.ts";
import { forgedItems, KEYS_OF_THE_FORGER } from "@zae-limiter/test-support/forged-items.ts";
import { newName } from "@zae-limiter/test-support/stores.ts";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import "@zae-limiter/test-engines/engine.ts";
import { describeUnless } from "@zae-limiter/test-support/unless.ts";

const TIMEOUT_MS = 20_000;
const TEMPLATE = resolveTemplate(stackTemplate(), stackParameters({}, "my-app"));
const RESOURCE = "gpt-4";

/** Every listing that goes through an index. */
const LISTINGS: Readonly<Record<string, (repo: Repository) => Promise<unknown>>> = {
  "entities.children": ({ entities }) => entities.children("org"),
  "limits.listEntities": ({ limits }) => limits.listEntities(RESOURCE),
  "buckets.list": async ({ buckets }) => (await buckets.list("org")).map(({ shard }) => shard),
  "buckets.capacity": async ({ buckets }) => (await buckets.capacity(RESOURCE, "rpm")).entities,
  "usage.summary": ({ usage }) => usage.summary({ resource: RESOURCE }),
  "usage.snapshots": ({ usage }) => usage.snapshots({ resource: RESOURCE }),
};

/** The policies that may write items, with the keys that they may forge under. */
const [ENTITY_KEYS, BUCKET_KEYS] = KEYS_OF_THE_FORGER;
const FORGERS = [
  { policy: "NamespaceAcquirePolicy", keys: BUCKET_KEYS },
  { policy: "NamespaceFullAccessPolicy", keys: ENTITY_KEYS },
  { policy: "AcquireOnlyPolicy", keys: BUCKET_KEYS },
] as const;
const READERS = ["NamespaceReadOnlyPolicy", "NamespaceFullAccessPolicy", "ReadOnlyPolicy"] as const;

/** IAM knows nothing of engines, so one of them is enough. */
const [first] = inject("engines").filter((engine) => engine.endpoint !== undefined);

describeUnless(first === undefined && "no local DynamoDB runs")(
  "a tenant that writes the index keys of another",
  () => {
    const endpoint = first?.endpoint ?? "";
    const table = newName();
    let gate: Gate;
    let forger: Repository;
    let victim: Repository;

    beforeAll(async () => {
      gate = await openGate(endpoint, arnOf(TABLE));
      forger = await Repository.createTable(table, {
        endpoint,
        timeoutMs: TIMEOUT_MS,
        namespaces: ["victim"],
      });
      victim = await forger.namespace("victim");
      await victim.entities.create({ id: "org" });
      await victim.entities.create({ id: "key-1", parentId: "org" });
      await victim.limits.setEntity("org", ["rpm:100/day"], { resource: RESOURCE });
      const limiter = new RateLimiter(victim);
      const request = { entityId: "org", resource: RESOURCE, consume: { rpm: 1 } };
      await (await limiter.acquire(request)).commit();
    });
    afterAll(async () => {
      await gate.close();
      await forger.close();
      await deleteTable({ table, endpoint });
    });

    function as(policy: string, tags: Tags): void {
      const statements = statementsOf(TEMPLATE, policy);
      gate.admit((access) => isAllowed(statements, tags, access));
    }

    async function forge({ policy, keys }: (typeof FORGERS)[number]): Promise<void> {
      as(policy, { zael_namespace_id: forger.namespaceId });
      const store = new DynamoItemStore({ table, endpoint: gate.endpoint, timeoutMs: TIMEOUT_MS });
      const items = forgedItems(victim.namespaceId, forger.namespaceId, keys.keyOf);
      for (const item of items) await store.put(item);
      await store.close();
    }

    async function seenBy(policy: string) {
      as(policy, { zael_namespace_id: victim.namespaceId });
      const warnings: LimiterWarning[] = [];
      const url = `dynamodb://${table}?endpoint=${gate.endpoint}&namespace=victim`;
      const limiter = await RateLimiter.open(url, {
        timeoutMs: TIMEOUT_MS,
        onWarning: (warning) => warnings.push(warning),
      });
      const seen: Record<string, unknown> = {};
      for (const [name, list] of Object.entries(LISTINGS)) {
        seen[name] = await list(limiter.repository);
      }
      await limiter.close();
      return { seen, warnings };
    }

    test("index keys of another tenant change no listing, and every listing warns", async () => {
      const { seen: before } = await seenBy("ReadOnlyPolicy");
      for (const attack of FORGERS) await forge(attack);
      for (const policy of READERS) {
        const { seen, warnings } = await seenBy(policy);
        expect(seen, policy).toEqual(before);
        expect(warnings.length, policy).toBe(Object.keys(LISTINGS).length);
        expect(new Set(warnings.map(({ kind }) => kind))).toEqual(new Set(["foreign_items"]));
      }
    });

    test("index keys of another tenant do not keep the victim from deleting its own entity", async () => {
      for (const attack of FORGERS) await forge(attack);
      as("NamespaceFullAccessPolicy", { zael_namespace_id: victim.namespaceId });
      const url = `dynamodb://${table}?endpoint=${gate.endpoint}&namespace=victim`;
      const limiter = await RateLimiter.open(url, { timeoutMs: TIMEOUT_MS, onWarning: () => {} });
      await limiter.repository.entities.create({ id: "passing" });
      const request = { entityId: "passing", resource: RESOURCE, limits: ["rpm:5"] };
      await (await limiter.acquire({ ...request, consume: { rpm: 1 } })).commit();
      const store = new DynamoItemStore({ table, endpoint, timeoutMs: TIMEOUT_MS });
      await store.put({
        PK: `${forger.namespaceId}/BUCKET#x#${RESOURCE}#0`,
        SK: "#STATE",
        GSI3PK: `${victim.namespaceId}/ENTITY#passing`,
        GSI3SK: `BUCKET#${RESOURCE}#1`,
      });
      await store.close();
      await limiter.repository.entities.delete("passing");
      expect(await limiter.repository.entities.get("passing")).toBeUndefined();
      await limiter.close();
    });

    test("a tenant may not write under the keys of another namespace, nor entities with ns-acq", async () => {
      as("NamespaceAcquirePolicy", { zael_namespace_id: forger.namespaceId });
      const store = new DynamoItemStore({ table, endpoint: gate.endpoint, timeoutMs: TIMEOUT_MS });
      for (const { keyOf } of KEYS_OF_THE_FORGER) {
        const [item] = forgedItems(victim.namespaceId, victim.namespaceId, keyOf);
        await expect(store.put(item as never)).rejects.toThrow(/not authorized|may not call/);
      }
      const [own] = forgedItems(victim.namespaceId, forger.namespaceId, ENTITY_KEYS.keyOf);
      await expect(store.put(own as never)).rejects.toThrow(/not authorized|may not call/);
      await store.close();
    });
  },
);
