/** The policies of our stacks on what the real Python library asks for when it acquires (H8). */

import { stackParameters } from "@zae-limiter/aws/options/stack-parameters.ts";
import { resolveTemplate } from "@zae-limiter/aws/template/resolve.ts";
import { TABLE } from "@zae-limiter/aws/template/table.ts";
import { stackTemplate } from "@zae-limiter/aws/template/template.ts";
import { describeEngines } from "@zae-limiter/test-engines/engines.ts";
import { arnOf, isAllowed, statementsOf } from "@zae-limiter/test-support/aws/iam/evaluate.ts";
import { type Gate, openGate } from "@zae-limiter/test-support/aws/iam/gate.ts";
import { afterAll, beforeAll, expect, it } from "vitest";
import { limit, PythonClient, type PythonError } from "./library.ts";
import { type Both, SharedTable, sum } from "./shared-table.ts";

const TEMPLATE = resolveTemplate(stackTemplate(), stackParameters({}, "my-app"));
const POLICIES = ["AcquireOnlyPolicy", "NamespaceAcquirePolicy"];
const R = "gpt-4";

describeEngines("policies next to Python 0.17.0", (engine) => {
  const table = new SharedTable(engine, "0.17.0");
  let gate: Gate;
  let guarded: PythonClient;
  beforeAll(async () => {
    gate = await openGate(engine.endpoint, arnOf(TABLE));
    guarded = new PythonClient("0.17.0");
  });
  afterAll(async () => {
    await guarded.close();
    await gate.close();
  });

  /** The guarded client in the namespace of both, with no permissions but those of a policy. */
  async function enter(policy: string, { repo }: Both): Promise<void> {
    const statements = statementsOf(TEMPLATE, policy);
    const tags = { zael_namespace_id: repo.namespaceId };
    gate.admit((access) => isAllowed(statements, tags, access));
    await guarded.open(table.place.table, gate.endpoint, repo.namespaceName, true);
  }

  /** Returns the permissions that the client has needed since. */
  const usedSince = (from: number) =>
    [...new Set(gate.accesses.slice(from).map(({ action }) => action))].sort();

  it.each(POLICIES)(
    "%s lets it acquire on new, live and cascading buckets (H8)",
    async (policy) => {
      const both = await table.open();
      const { repo } = both;
      await repo.limits.setSystem(["rpd:100/day", "tpd:1000/day soft"]);
      await repo.limits.setResource("own", ["rpd:5/day"]);
      await repo.entities.create({ id: "org" });
      await repo.entities.create({ id: "key-1", parentId: "org", cascade: true });
      await enter(policy, both);
      const from = gate.accesses.length;
      // The record of the owner is there, and is not.
      for (const id of ["key-1", "stranger"]) {
        await guarded.acquire(id, R, { rpd: 1 });
        await guarded.acquire(id, R, { rpd: 2 }, { adjust: { rpd: 3 } });
        await guarded.acquire(id, R, { rpd: 9, tpd: 2000 }, { how: "rollback" });
        await guarded.acquire(id, R, { rpd: 1 }, { also: { own: { rpd: 1 } } });
        expect(await guarded.grants(id, R, { rpd: 95 })).toBe(false);
      }
      expect(sum(await table.shards(both, "org", R), "b_rpd_tc")).toBe(7000);
      const place = { entity_id: "stranger", resource: R };
      expect(await guarded.limiter("available", place)).toEqual({ rpd: 93, tpd: 1000 });
      expect(usedSince(from)).toContain("dynamodb:ConditionCheckItem");
      const more = await typeOf(guarded.repo("create_entity", ["intruder"]));
      expect([more, await repo.entities.get("intruder")]).toEqual(["ClientError", undefined]);
    },
  );

  it.each(POLICIES)(
    "%s lets it follow shards, switches and limits of a call (H8)",
    async (policy) => {
      const both = await table.open();
      const { repo, python } = both;
      await repo.limits.setResource(R, ["rpd:100/day"]);
      await enter(policy, both);
      await guarded.acquire("sharded", R, { rpd: 1 });
      await python.repo("bump_shard_count", ["sharded", R, 1]);
      for (let round = 0; round < 9; round += 1) await guarded.acquire("sharded", R, { rpd: 1 });
      expect(sum(await table.shards(both, "sharded", R), "b_rpd_tc")).toBe(10_000);
      const given = { limits: [limit("calls", 5)] };
      await guarded.acquire("guest", "other", { calls: 1 }, given);
      await guarded.acquire("free", R, { rpd: 1 });
      await repo.limits.bypass({ entityId: "free", resource: R });
      expect(await guarded.grants("free", R, { rpd: 500 })).toBe(true);
      await repo.limits.disable({ resource: R });
      for (const id of ["sharded", "new"]) {
        expect(await typeOf(guarded.acquire(id, R, { rpd: 1 }))).toBe("ResourceDisabled");
      }
    },
  );

  it("NamespaceAcquirePolicy lets it acquire in no other namespace", async () => {
    const [own, other] = [await table.open(), await table.open()];
    await other.repo.limits.setResource(R, ["rpd:100/day"]);
    await enter("NamespaceAcquirePolicy", own);
    await guarded.open(table.place.table, gate.endpoint, other.repo.namespaceName, true);
    expect(await typeOf(guarded.acquire("e", R, { rpd: 1 }))).toBe("PermissionDenied");
    expect(await table.shards(other, "e", R)).toEqual([]);
  });
});

const typeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "granted",
    (error: PythonError) => error.type,
  );
