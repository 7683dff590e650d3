/** A gateway works with the policies of an application, in its own namespace. */

import { stackParameters } from "@zae-limiter/aws/options/stack-parameters.ts";
import { resolveTemplate } from "@zae-limiter/aws/template/resolve.ts";
import { TABLE } from "@zae-limiter/aws/template/table.ts";
import { stackTemplate } from "@zae-limiter/aws/template/template.ts";
import { BackgroundResponses, type Remembered } from "@zae-limiter/gateway/background.ts";
import { KeyLookup } from "@zae-limiter/gateway/key-lookup.ts";
import { createKey } from "@zae-limiter/gateway/keys.ts";
import { keptLeaseOf } from "@zae-limiter/limiter/acquire/lease/kept-lease.ts";
import { RateLimiter, Repository } from "@zae-limiter/limiter/index.ts";
import { deleteTable } from "@zae-limiter/limiter/storage/dynamodb/create-table.ts";
import { arnOf, isAllowed, statementsOf } from "@zae-limiter/test-support/aws/iam/evaluate.ts";
import { openGate } from "@zae-limiter/test-support/aws/iam/gate.ts";
import { newName } from "@zae-limiter/test-support/stores.ts";
import { describeUnless } from "@zae-limiter/test-support/unless.ts";
import { expect, inject, test } from "vitest";
import "@zae-limiter/test-engines/engine.ts";

const TEMPLATE = resolveTemplate(stackTemplate(), stackParameters({}, "my-app"));
/** IAM knows nothing of engines, so one of them is enough. */
const [first] = inject("engines").filter((engine) => engine.endpoint !== undefined);

describeUnless(first === undefined && "no local DynamoDB runs")("a gateway with a policy", () => {
  test.each(["AcquireOnlyPolicy", "NamespaceAcquirePolicy"])(
    "%s is enough to find keys and switches, and to settle background responses",
    async (policy) => {
      const endpoint = first?.endpoint ?? "";
      const table = newName();
      const admin = await Repository.createTable(table, { endpoint, timeoutMs: 20_000 });
      await admin.limits.setSystem(["tpd:1000/day"]);
      const { key } = await createKey(admin, "team-a", undefined);
      const { key: off } = await createKey(admin, "team-b", undefined);
      await admin.limits.disable({ entityId: "team-b" });
      const gate = await openGate(endpoint, arnOf(TABLE));
      const tags = { zael_namespace_id: admin.namespaceId };
      const statements = statementsOf(TEMPLATE, policy);
      gate.admit((access) => isAllowed(statements, tags, access));
      const there = { endpoint: gate.endpoint, timeoutMs: 20_000 };
      const limiter = new RateLimiter(await Repository.connect(table, there));

      const keys = new KeyLookup(limiter.repository);
      expect(await keys.find(key, "192.0.2.1")).toMatchObject({ isDisabled: false });
      expect(await keys.find(off, "192.0.2.1")).toMatchObject({ isDisabled: true });

      const target = { entityId: "team-a", resource: "gpt-4" };
      const lease = await limiter.acquire({ ...target, consume: { tpd: 600 } });
      await lease.commit();
      const responses = new BackgroundResponses(limiter);
      const place = ["team-a", "gpt-4", "https://api.test/v1"] as const;
      await responses.remember("resp_1", "key-1", ...place, keptLeaseOf(lease));
      const found = (await responses.of("resp_1", "key-1")) as Remembered;
      await responses.settle("resp_1", found, { tpd: 100 });
      expect(await limiter.available(target)).toEqual({ tpd: 900 });

      await limiter.close();
      await gate.close();
      await admin.close();
      await deleteTable({ table, endpoint });
    },
  );
});
