/** Quotas and sessions among stored limits: what is written, read back and refused. */

import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { applyManifest, planManifest } from "@zae-limiter/limiter/manifest/apply.ts";
import { parseManifest } from "@zae-limiter/limiter/manifest/parse-manifest.ts";
import { versionKey } from "@zae-limiter/limiter/records/keys.ts";
import { pythonItem } from "@zae-limiter/test-support/golden-items.ts";
import { failureOf } from "@zae-limiter/test-support/outcomes.ts";
import { describeStores } from "@zae-limiter/test-support/stores.ts";
import { itUnless } from "@zae-limiter/test-support/unless.ts";
import { describe, expect, it } from "vitest";

const TEXTS = ["month:5/month Europe/Berlin soft", "rpm:60/min", "ses:7/session:5hour"];

describe("quotas and sessions", () => {
  describeStores("stored limits", (store) => {
    it("quotas and sessions are read back at every level as they were set", async () => {
      const repo = await store.open();
      await repo.limits.setSystem(TEXTS);
      await repo.limits.setResource("gpt-4", TEXTS);
      await repo.limits.setEntity("key-1", TEXTS, { resource: "gpt-4" });
      repo.limits.invalidateCache();
      for (const limits of [
        (await repo.limits.getSystem()).limits,
        await repo.limits.getResource("gpt-4"),
        await repo.limits.getEntity("key-1", { resource: "gpt-4" }),
        (await repo.limits.resolve("key-1", "gpt-4"))?.limits,
      ]) {
        expect(limits?.map(String)).toEqual(TEXTS);
      }
    });

    it("limits that are stored already are not written again", async () => {
      const repo = await store.open();
      await repo.limits.setResource("gpt-4", TEXTS);
      const key = { PK: `${repo.namespaceId}/RESOURCE#gpt-4`, SK: "#CONFIG" };
      const before = await store.items.get(key, { consistent: true });
      await repo.limits.setResource("gpt-4", [...TEXTS].reverse());
      expect(await store.items.get(key, { consistent: true })).toEqual(before);
    });

    it("a limit of another kind replaces none unless the caller says so", async () => {
      const repo = await store.open();
      await repo.limits.setResource("gpt-4", ["month:5/month", "rpm:60"]);
      for (const text of ["month:5/min", "month:5/session:5hour"]) {
        const error = await failureOf(repo.limits.setResource("gpt-4", [text]));
        expect(error).toBeInstanceOf(ValidationError);
        expect((error as Error).message).toContain('the stored limit "month" is a quota');
      }
      expect(await repo.limits.getResource("gpt-4")).toHaveLength(2);
      await repo.limits.setResource("gpt-4", ["month:5/week Asia/Tokyo"]);
      await repo.limits.setResource("gpt-4", ["month:5/min"], { replaceKind: true });
      expect((await repo.limits.getResource("gpt-4")).map(String)).toEqual(["month:5/min"]);
      const key = { PK: `${repo.namespaceId}/RESOURCE#gpt-4`, SK: "#CONFIG" };
      const item = await store.items.get(key, { consistent: true });
      const left = Object.keys(item ?? {}).filter((name) => /^(?:l_|w_|sched)/.test(name));
      expect(left.sort()).toEqual(["l_month_cp", "l_month_ra", "l_month_rp"]);
    });

    it("a limits file with the word replaces limits by others of another kind", async () => {
      const repo = await store.open();
      await repo.limits.setSystem(["req:5"]);
      const text = `namespace: "${repo.namespaceName}"
system: { limits: { req: { quota: { amount: 9, every: day } }, ses: { capacity: 3, session_seconds: 60 } } }
`;
      const manifest = parseManifest(text);
      const [change] = (await planManifest(repo, manifest)).changes;
      expect(change).toMatchObject({ action: "update", reason: "kind" });
      const refused = await applyManifest(repo, manifest);
      expect(refused.failed.map(({ error }) => error)).toEqual([expect.any(ValidationError)]);
      const willing = parseManifest(`replace_kind: true\n${text}`);
      expect((await applyManifest(repo, willing)).failed).toEqual([]);
      const { limits } = await repo.limits.getSystem();
      expect(limits.map(String)).toEqual(["req:9/day UTC", "ses:3/session:min"]);
      expect((await planManifest(repo, manifest)).changes).toEqual([]);
    });

    it("slots are stored under names of their own, and go with their limit", async () => {
      const repo = await store.open();
      const text = "parallel:20 concurrent soft";
      const key = { PK: `${repo.namespaceId}/RESOURCE#gpt-4`, SK: "#CONFIG" };
      await repo.limits.setResource("gpt-4", ["rpm:60", text]);
      const item = await store.items.get(key, { consistent: true });
      expect(item).toMatchObject({ s_parallel_cp: 20, s_parallel_soft: true });
      expect((await repo.limits.getResource("gpt-4")).map(String)).toEqual([text, "rpm:60/min"]);
      await repo.limits.setResource("gpt-4", ["rpm:60"]);
      const left = Object.keys((await store.items.get(key, { consistent: true })) ?? {});
      expect(left.filter((name) => name.startsWith("s_"))).toEqual([]);
    });

    it("quotas and sessions that Python stored are read", async () => {
      const repo = await store.open();
      const quota = pythonItem("40-config-resource-schedules", repo.namespaceId);
      const session = pythonItem("42-config-resource-session-quota", repo.namespaceId);
      await store.items.writeMany({ puts: [quota, session] });
      expect((await repo.limits.getResource("sched")).map(String)).toContain(
        "rpd:10000/day America/New_York",
      );
      expect((await repo.limits.getResource("session")).map(String)).toEqual([
        "rpm:60/min",
        "session:10000/session:5hour",
      ]);
    });

    itUnless(store.embedded && "clients of Python use DynamoDB tables")(
      "what Python would reset in another way is refused on a table that it serves",
      async () => {
        const repo = await store.open();
        const carried = Limit.quota("month", 5, { every: "month", carry: "debt" });
        const zones = ["a:5/day Asia/Tokyo", "b:5/day UTC"];
        await repo.limits.setResource("r1", [carried]);
        await repo.limits.setResource("r2", zones);
        await store.items.update(versionKey(), { set: { lambda_version: "0.17.0" } });
        try {
          for (const limits of [[carried], zones]) {
            const error = await failureOf(repo.limits.setResource("r3", limits));
            expect(error).toBeInstanceOf(ValidationError);
            expect((error as Error).message).toContain("a table that the Python library 0.17.0");
          }
          await repo.limits.setResource("r3", ["a:5/day Asia/Tokyo", "ses:5/session:day"]);
          const record = await store.items.get(versionKey(), { consistent: true });
          expect(record?.client_min_version).not.toBe("0.0.0");
        } finally {
          await store.items.update(versionKey(), { set: { lambda_version: null } });
        }
      },
    );
  });
});
