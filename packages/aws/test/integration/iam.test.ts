/**
 * Every policy of the template, on the calls that are really made: each run goes through a gate
 * that refuses what IAM would refuse. Each role can do what it may do, and no more.
 */

import { createHandler } from "@zae-limiter/aws/aggregator/lambda.ts";
import type { LambdaEvent } from "@zae-limiter/aws/aggregator/lambda-event.ts";
import { jsonLog } from "@zae-limiter/aws/aggregator/log.ts";
import { splitterOver } from "@zae-limiter/aws/aggregator/splitter.ts";
import { createLimitsHandler } from "@zae-limiter/aws/limits-resource/lambda.ts";
import { stackParameters } from "@zae-limiter/aws/options/stack-parameters.ts";
import { AUDIT_FILTER, BUCKET_FILTER } from "@zae-limiter/aws/template/aggregator.ts";
import { resolveTemplate } from "@zae-limiter/aws/template/resolve.ts";
import { TABLE } from "@zae-limiter/aws/template/table.ts";
import { stackTemplate } from "@zae-limiter/aws/template/template.ts";
import { systemClock, systemTimer } from "@zae-limiter/limiter/base/time.ts";
import {
  decoded,
  type SeenBucket,
} from "@zae-limiter/limiter/buckets/distributed/plan/seen-bucket.ts";
import { RateLimiter, Repository } from "@zae-limiter/limiter/index.ts";
import { bucketKey } from "@zae-limiter/limiter/records/keys.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import { openAsItIs } from "@zae-limiter/limiter/repository/store-as-it-is.ts";
import { tableAt } from "@zae-limiter/limiter/repository/stores/dynamodb.ts";
import { deleteTable } from "@zae-limiter/limiter/storage/dynamodb/create-table.ts";
import { DynamoItemStore } from "@zae-limiter/limiter/storage/dynamodb/item-store.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import { matchesFilter } from "@zae-limiter/test-support/aws/event-filter.ts";
import {
  arnOf,
  isAllowed,
  statementsOf,
  type Tags,
} from "@zae-limiter/test-support/aws/iam/evaluate.ts";
import { type Gate, openGate } from "@zae-limiter/test-support/aws/iam/gate.ts";
import { newName } from "@zae-limiter/test-support/stores.ts";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import "@zae-limiter/test-engines/engine.ts";
import { streamRecords } from "@zae-limiter/test-support/aws/stream-records.ts";
import { describeUnless } from "@zae-limiter/test-support/unless.ts";
import { CloudFormation, LOCAL_PLACE } from "../unit/limits-resource/requests.ts";

const TIMEOUT_MS = 20_000;
const TEMPLATE = resolveTemplate(stackTemplate(), stackParameters({}, "my-app"));
const DENIED = /may not call|not authorized/;
const NAME = { entityId: "child", resource: "shards" };

/** IAM knows nothing of engines, so one of them is enough. */
const [first] = inject("engines").filter((engine) => engine.endpoint !== undefined);

describeUnless(first === undefined && "no local DynamoDB runs")("policies", () => {
  const endpoint = first?.endpoint ?? "";
  const table = newName();
  let gate: Gate;
  let seed: Repository;
  let other: Repository;

  beforeAll(async () => {
    gate = await openGate(endpoint, arnOf(TABLE));
    seed = await Repository.createTable(table, {
      endpoint,
      timeoutMs: TIMEOUT_MS,
      namespaces: ["other"],
    });
    other = await seed.namespace("other");
    for (const repo of [seed, other]) {
      await repo.limits.setSystem(["rpm:100/day", "tpm:1000/day"]);
      await repo.entities.create({ id: "parent" });
      await repo.entities.create({ id: "child", parentId: "parent", cascade: true });
    }
  });
  afterAll(async () => {
    await gate.close();
    await seed.close();
    await deleteTable({ table, endpoint });
  });

  /** From now on only these policies count. */
  function as(policy: string, tags: Tags = {}): void {
    const statements = statementsOf(TEMPLATE, policy);
    gate.admit((access) => isAllowed(statements, tags, access));
  }

  /** A limiter behind the gate. */
  async function enter(namespace = "default"): Promise<RateLimiter> {
    const url = `dynamodb://${table}?endpoint=${gate.endpoint}&namespace=${namespace}`;
    return RateLimiter.open(url, { timeoutMs: TIMEOUT_MS, configCacheTtlSeconds: 0 });
  }

  /** Everything an application does, on buckets that are not there yet. */
  async function acquires(limiter: RateLimiter, resource: string): Promise<void> {
    const request = { entityId: "child", resource, consume: { rpm: 1, tpm: 5 } };
    const lease = await limiter.acquire(request);
    await lease.consume({ tpm: 2 });
    lease.adjust({ tpm: 3 });
    await lease.commit();
    await (await limiter.acquire(request)).rollback();
    expect((await limiter.tryAcquire({ ...request, consume: { rpm: 1000 } })).granted).toBe(false);
    const own = { entityId: "guest", resource, limits: ["calls:5"], consume: { calls: 1 } };
    await (await limiter.acquire(own)).commit();
    expect(await limiter.available({ entityId: "child", resource })).toEqual({ rpm: 99, tpm: 990 });
    await holds(limiter, resource);
  }

  /** Holds a slot, and reads the record of the process that holds the only one. */
  async function holds(limiter: RateLimiter, resource: string): Promise<void> {
    const limits = ["parallel:1 concurrent"];
    const request = { entityId: "guest", resource: `${resource}-slots`, limits };
    const held = await limiter.acquire({ ...request, consume: { parallel: 1 } });
    const other = await enter(limiter.repository.namespaceName);
    const refused = { ...request, consume: { parallel: 1 }, onUnavailable: "block" } as const;
    expect((await other.tryAcquire(refused)).granted).toBe(false);
    await other.close();
    await held.commit();
  }

  async function reads({ repository }: RateLimiter): Promise<void> {
    const { entities, limits, buckets, audit, usage } = repository;
    await entities.get("child");
    await entities.children("parent");
    await limits.getSystem();
    await limits.listResources();
    await limits.listEntities("gpt-4");
    await buckets.list("child");
    await buckets.capacity("gpt-4", "rpm");
    await audit.list("child");
    await usage.summary({ entityId: "child" });
    await usage.snapshots({ resource: "gpt-4" });
    await repository.version();
  }

  /** Everything an administrator does within a namespace. */
  async function administers({ repository }: RateLimiter, id: string): Promise<void> {
    const { entities, limits } = repository;
    await entities.create({ id, parentId: "parent" });
    await limits.setEntity(id, ["rpm:3"], { resource: "gpt-4" });
    await limits.setResource("gpt-4", ["rpm:50", "tpm:500"]);
    await limits.deleteResource("gpt-4");
    await limits.deleteEntity(id, { resource: "gpt-4" });
    await limits.setSystem(["rpm:100/day", "tpm:1000/day"]);
    await entities.delete(id);
  }

  /** Makes two of each shard. */
  async function split(store: ItemStore, resource: string): Promise<number> {
    const name = { namespaceId: seed.namespaceId, entityId: "child", resource, shard: 0 };
    const item = await store.get(bucketKey(name.namespaceId, "child", resource, 0));
    const bucket = decoded(item as Item) as SeenBucket;
    return splitterOver({ store, clock: systemClock }).split(name, bucket, new Map());
  }

  /** The actions that were asked for since, and those that a policy allows on the table. */
  function usedSince(from: number): string[] {
    return [...new Set(gate.accesses.slice(from).map(({ action }) => action))].sort();
  }
  function allowedOnTable(policy: string): string[] {
    const statements = statementsOf(TEMPLATE, policy).filter(({ Resource }) =>
      [Resource].flat().includes(arnOf(TABLE)),
    );
    return [...new Set(statements.flatMap(({ Action }) => Action))].sort();
  }

  const denied = (work: Promise<unknown>) => expect(work).rejects.toThrow(DENIED);

  describe("for the whole table", () => {
    test("acq acquires and adjusts on a fresh table, and nothing else (W23)", async () => {
      as("AcquireOnlyPolicy");
      const limiter = await enter();
      await acquires(limiter, "acq");
      const { entities, limits, namespaces, audit, buckets } = limiter.repository;
      await denied(limits.setSystem(["rpm:1"]));
      await denied(limits.setEntity("child", ["rpm:1000"]));
      await denied(entities.create({ id: "intruder" }));
      await denied(entities.delete("child"));
      await denied(namespaces.register("mine"));
      await denied(namespaces.list());
      await denied(audit.list("child"));
      // The Python library finds buckets by the indexes when it acquires.
      await buckets.list("child");
      await limiter.close();
    });

    test("acq takes from a bucket in shards, makes the missing one, and has no permission to spare", async () => {
      as("AcquireOnlyPolicy");
      const from = gate.accesses.length;
      const limiter = await enter();
      await acquires(limiter, "shards");
      const store = new DynamoItemStore({ table, endpoint, timeoutMs: TIMEOUT_MS });
      const shard = (at: number) => bucketKey(seed.namespaceId, "child", "shards", at);
      expect(await split(store, "shards")).toBe(1);
      await limiter.close();
      const fresh = await enter();
      // No single shard holds that much.
      const most = { ...NAME, consume: { rpm: 60 } };
      await (await fresh.acquire(most)).commit();
      // As after an unfinished split: a client that misses a shard creates it.
      await store.update(shard(0), { set: { shard_count: 4 } });
      await fresh.close();
      const last = await enter();
      for (let call = 0; call < 12; call += 1) {
        await (await last.acquire({ ...NAME, consume: { tpm: 1 } })).commit();
      }
      await last.close();
      expect(await store.get(shard(2))).toBeDefined();
      await store.close();
      const used = [...usedSince(from), "dynamodb:ConditionCheckItem"].sort();
      expect(used).toEqual(allowedOnTable("AcquireOnlyPolicy"));
    });

    test("acq and ns-acq may create a bucket as the Python library does, and no more (H8)", async () => {
      for (const policy of ["AcquireOnlyPolicy", "NamespaceAcquirePolicy"]) {
        as(policy, { zael_namespace_id: seed.namespaceId });
        const store = new DynamoItemStore({
          table,
          endpoint: gate.endpoint,
          timeoutMs: TIMEOUT_MS,
        });
        const owner = { PK: `${seed.namespaceId}/ENTITY#child`, SK: "#META" };
        const put = { ...bucketKey(seed.namespaceId, "child", `python-${policy}`, 0), rf: 1 };
        const exists = [{ is: "exists", name: "PK" }] as const;
        const result = await store.transact([{ put }, { check: owner, condition: exists }]);
        expect(result.ok).toBe(true);
        await denied(store.transact([{ put: owner }]));
        const audit = { PK: `${seed.namespaceId}/AUDIT#child`, SK: "#AUDIT#1" };
        await denied(store.transact([{ put }, { check: audit, condition: exists }]));
        await store.close();
      }
    });

    test("read reads everything, and writes nothing", async () => {
      as("ReadOnlyPolicy");
      const limiter = await enter();
      await reads(limiter);
      await limiter.repository.namespaces.list();
      const { limits, entities } = limiter.repository;
      const request = { entityId: "child", resource: "read", consume: { rpm: 1 } };
      await denied(limiter.acquire({ ...request, onUnavailable: "block" }));
      await denied(limits.setSystem(["rpm:1"]));
      await denied(entities.create({ id: "intruder" }));
      await limiter.close();
    });

    test("full does everything, namespaces included", async () => {
      as("FullAccessPolicy");
      const limiter = await enter();
      await acquires(limiter, "full");
      await reads(limiter);
      await administers(limiter, "full");
      const { namespaces } = limiter.repository;
      const { passing = "" } = await namespaces.register("passing");
      await namespaces.delete("passing");
      await namespaces.purge(passing);
      await limiter.close();
    });
  });

  describe("for one namespace", () => {
    const tagged = () => ({ zael_namespace_id: seed.namespaceId });

    test("ns-acq acquires in its own, and not in another (W24)", async () => {
      as("NamespaceAcquirePolicy", tagged());
      const limiter = await enter();
      await acquires(limiter, "ns-acq");
      await denied(limiter.repository.limits.setSystem(["rpm:1"]));
      await denied(limiter.repository.namespaces.list());
      await limiter.close();
      const stranger = await enter("other");
      const request = { entityId: "child", resource: "ns-acq", consume: { rpm: 1 } };
      await denied(stranger.acquire({ ...request, onUnavailable: "block" }));
      await stranger.close();
    });

    test("acq and ns-acq share notes, as a gateway does, and ns-acq only in its own", async () => {
      for (const policy of ["AcquireOnlyPolicy", "NamespaceAcquirePolicy"]) {
        as(policy, tagged());
        const limiter = await enter();
        const { notes } = limiter.repository[INTERNALS];
        expect(await notes.create(`job-${policy}`, 1)).toBe(true);
        expect(await notes.replace(`job-${policy}`, 1, 2)).toBe(true);
        expect(await notes.get(`job-${policy}`)).toBe(2);
        await notes.set("models", ["gpt-4"]);
        await limiter.close();
      }
      const stranger = await enter("other");
      const { notes } = stranger.repository[INTERNALS];
      await denied(notes.get("models"));
      await denied(notes.create("models", 1));
      await denied(notes.set("models", 1));
      await denied(notes.replace("models", 1, 2));
      await stranger.close();
    });

    test("ns-read reads in its own, index by index, and not in another", async () => {
      as("NamespaceReadOnlyPolicy", tagged());
      const limiter = await enter();
      await reads(limiter);
      await denied(limiter.repository.limits.setSystem(["rpm:1"]));
      await limiter.close();
      const stranger = await enter("other");
      await denied(stranger.repository.entities.get("child"));
      await denied(stranger.repository.entities.children("parent"));
      await stranger.close();
    });

    test("ns-full changes its own, and neither another nor the registry (W24)", async () => {
      as("NamespaceFullAccessPolicy", tagged());
      const limiter = await enter();
      await acquires(limiter, "ns-full");
      await reads(limiter);
      await administers(limiter, "ns-full");
      const { namespaces } = limiter.repository;
      await denied(namespaces.register("mine"));
      await denied(namespaces.delete("other"));
      await denied(namespaces.list());
      await limiter.close();
      const stranger = await enter("other");
      await denied(stranger.repository.limits.setSystem(["rpm:1"]));
      await denied(stranger.repository.entities.create({ id: "intruder" }));
      await stranger.close();
    });

    test("without a tag there is no namespace, and a request without a key is refused", async () => {
      for (const policy of ["NamespaceAcquirePolicy", "NamespaceFullAccessPolicy"]) {
        as(policy);
        const limiter = await enter();
        const request = { entityId: "child", resource: "untagged", consume: { rpm: 1 } };
        await denied(limiter.acquire({ ...request, onUnavailable: "block" }));
        await limiter.close();
        const scan = { action: "dynamodb:Scan", resource: arnOf(TABLE), leadingKeys: undefined };
        const statements = statementsOf(TEMPLATE, policy);
        expect(isAllowed(statements, tagged(), scan)).toBe(false);
        const query = { ...scan, action: "dynamodb:Query" };
        expect(isAllowed(statements, tagged(), query)).toBe(false);
      }
    });

    test("everything in a namespace can be listed by its own, through GSI4", () => {
      const resource = `${arnOf(TABLE)}/index/GSI4`;
      const query = (id: string) => ({ action: "dynamodb:Query", resource, leadingKeys: [id] });
      for (const policy of ["NamespaceReadOnlyPolicy", "NamespaceFullAccessPolicy"]) {
        const statements = statementsOf(TEMPLATE, policy);
        expect(isAllowed(statements, tagged(), query(seed.namespaceId))).toBe(true);
        expect(isAllowed(statements, tagged(), query(other.namespaceId))).toBe(false);
        expect(isAllowed(statements, tagged(), query(`${seed.namespaceId}x`))).toBe(false);
        expect(isAllowed(statements, tagged(), query("_"))).toBe(false);
      }
    });
  });

  describe("of the Lambdas", () => {
    test("the aggregator gets what the filters let through, and may write what it counts", async () => {
      const limiter = new RateLimiter(seed);
      const request = { entityId: "child", resource: "counted", consume: { rpm: 1, tpm: 5 } };
      await (await limiter.acquire(request)).commit();
      await (await limiter.acquire(request)).commit();
      // What was counted for an entity before its deletion was known is removed again.
      await (await limiter.acquire({ ...request, entityId: "gone" })).commit();
      await seed.entities.delete("gone");
      const store = new DynamoItemStore({ table, endpoint, timeoutMs: TIMEOUT_MS });
      const [event] = await seed.audit.list("child");
      const PK = `${seed.namespaceId}/AUDIT#child`;
      await store.delete({ PK, SK: `#AUDIT#${event?.eventId}` });
      await store.close();

      const records = await streamRecords(table, endpoint);
      const removed = records.filter((record) => matchesFilter(AUDIT_FILTER, record));
      expect(removed.map(({ eventName, dynamodb }) => [eventName, dynamodb?.Keys?.PK])).toEqual([
        ["REMOVE", { S: PK }],
      ]);
      const taken = records.filter((record) => matchesFilter(BUCKET_FILTER, record));
      expect(taken.length).toBeGreaterThan(2);
      expect(taken.length).toBeLessThan(records.length);

      as("AggregatorRole");
      const from = gate.accesses.length;
      const archived: string[] = [];
      const guarded = new DynamoItemStore({
        table,
        endpoint: gate.endpoint,
        timeoutMs: TIMEOUT_MS,
      });
      const handler = createHandler({
        table,
        store: guarded,
        clock: systemClock,
        timer: systemTimer,
        log: jsonLog({ clock: systemClock, write: () => undefined }),
        retentionDays: 90,
        windows: ["hourly", "daily"],
        splitter: splitterOver({ store: guarded, clock: systemClock }),
        archive: {
          put: async (key: string) => void archived.push(key),
        },
      });
      const Records = [...taken, ...removed] as LambdaEvent["Records"] & object;
      expect(await handler({ Records })).toEqual({ batchItemFailures: [] });
      expect(await split(guarded, "counted")).toBe(1);
      const { namespaceId } = seed;
      const name = { namespaceId, entityId: "child", resource: "counted", shard: 0 };
      const half = await guarded.get(bucketKey(name.namespaceId, "child", "counted", 0));
      const bucket = { ...(decoded(half as Item) as SeenBucket), shardCount: 2 };
      const complete = splitterOver({ store: guarded, clock: systemClock }).complete(name, bucket);
      expect(await complete).toBe(0);
      await guarded.close();
      expect(usedSince(from)).toEqual(allowedOnTable("AggregatorRole"));
      const { snapshots } = await seed.usage.snapshots({ entityId: "child", resource: "counted" });
      expect(snapshots.map(({ counters }) => counters)).toContainEqual({ rpm: 2, tpm: 10 });
      // They go to the archive, and nowhere else.
      expect(archived.every((key) => key.startsWith("audit/"))).toBe(true);
      expect(archived).toHaveLength(1);
    });

    test("the provisioner may apply limits, and take them away", async () => {
      as("ProvisionerRole");
      const from = gate.accesses.length;
      const handler = createLimitsHandler({
        place: LOCAL_PLACE,
        table,
        open: () =>
          openAsItIs(tableAt(table, { endpoint: gate.endpoint }), { timeoutMs: TIMEOUT_MS }),
        timer: systemTimer,
        log: () => undefined,
      });
      const cloudFormation = await CloudFormation.start();
      const Limits = { rpm: { Capacity: "500" } };
      const properties = {
        TableName: table,
        Resources: { claude: { Limits } },
        Entities: { child: { Resources: { claude: { Limits } } } },
      };
      const made = await cloudFormation.send(handler, { type: "Create", properties });
      expect(made).toMatchObject({ Status: "SUCCESS" });
      const gone = await cloudFormation.send(handler, {
        type: "Delete",
        properties,
        physicalId: made.PhysicalResourceId,
      });
      await cloudFormation.stop();
      expect(gone).toMatchObject({ Status: "SUCCESS" });
      expect(usedSince(from)).toEqual(allowedOnTable("ProvisionerRole"));
    });

    test("neither role may scan, nor write outside of its keys", () => {
      for (const role of ["AggregatorRole", "ProvisionerRole"]) {
        const statements = statementsOf(TEMPLATE, role);
        for (const action of ["Scan", "BatchWriteItem"]) {
          const access = { action: `dynamodb:${action}`, resource: arnOf(TABLE) };
          expect(isAllowed(statements, {}, { ...access, leadingKeys: undefined })).toBe(false);
        }
      }
    });

    test("no role may change the table itself, or export its data", () => {
      const tags = { zael_namespace_id: seed.namespaceId };
      for (const [id, { Type }] of Object.entries(TEMPLATE.Resources)) {
        if (Type !== "AWS::IAM::ManagedPolicy" && Type !== "AWS::IAM::Role") continue;
        const statements = statementsOf(TEMPLATE, id);
        for (const action of ["DeleteTable", "UpdateTable", "CreateBackup", "PutResourcePolicy"]) {
          const access = { action: `dynamodb:${action}`, resource: arnOf(TABLE) };
          expect(isAllowed(statements, tags, { ...access, leadingKeys: undefined })).toBe(false);
        }
      }
    });
  });
});
