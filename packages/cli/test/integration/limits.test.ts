/** `limits` as a child process, on SQLite and on local DynamoDB: operations cases 37 to 50. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { provisionerKey } from "@zae-limiter/limiter/records/keys.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import { type CliStore, describeCliStores } from "@zae-limiter/test-support/binary.ts";
import { afterAll, expect, test } from "vitest";
import { parse, stringify } from "yaml";

const folder = mkdtempSync(join(tmpdir(), "zae-limiter-limits-"));
afterAll(() => rmSync(folder, { recursive: true }));

let files = 0;

/** A file with these contents; a text is written as it is. */
function fileOf(content: unknown): string {
  files += 1;
  const path = join(folder, `limits-${files}.yaml`);
  writeFileSync(path, typeof content === "string" ? content : stringify(content));
  return path;
}

const rpm = (capacity: number) => ({ limits: { rpm: { capacity } } });

/** The manifest of the cases 45 to 48. */
function manifest({ namespace }: CliStore, value = 10, resources = ["gpt-4", "gpt-3"]): object {
  return {
    namespace,
    system: { on_unavailable: "block", ...rpm(value) },
    resources: Object.fromEntries(resources.map((name) => [name, rpm(value)])),
    entities: { "user-1": { resources: { "gpt-4": rpm(value) } } },
  };
}

interface Applied {
  readonly created: number;
  readonly updated: number;
  readonly deleted: number;
  readonly errors: readonly string[];
}

describeCliStores("limits", (store) => {
  test("limits apply creates, changes nothing, corrects drift, updates and deletes (op 37, 45, 46, 47, 48)", async () => {
    const file = fileOf(manifest(store));
    const first = await store.json<Applied>("limits", "apply", "-f", file);
    expect(first).toMatchObject({ created: 4, updated: 0, deleted: 0, errors: [] });
    const { limits } = store.repository;
    expect((await limits.getResource("gpt-4")).map(String)).toEqual(["rpm:10/min"]);

    const plan = await store.run("limits", "plan", "-f", file);
    expect([plan.code, plan.out]).toEqual([
      0,
      `No changes: 4 entries in ${store.namespace} as declared\n`,
    ]);
    expect((await store.run("limits", "diff", "-f", file)).code).toBe(0);

    await limits.setResource("gpt-4", ["rpm:11"]);
    const drift = await store.run("limits", "diff", "-f", file);
    expect(drift.code).toBe(5);
    expect(drift.out).toContain("  ~ resource gpt-4\n      ~ rpm: 11/min -> 10/min\n");

    const smaller = fileOf(manifest(store, 12, ["gpt-4"]));
    const second = await store.json<Applied>("limits", "apply", "-f", smaller);
    expect(second).toMatchObject({ created: 0, updated: 3, deleted: 1 });
    const empty = fileOf({ namespace: store.namespace });
    const third = await store.json<Applied>("limits", "apply", "-f", empty);
    expect(third).toMatchObject({ created: 0, updated: 0, deleted: 3 });
    expect(await limits.getSystem()).toEqual({ limits: [] });
  });

  test("one change fails, the others are applied, and it is said (op 38, 50)", async () => {
    // An apply cannot fail by itself; another client has to be in the way of one change.
    const { records } = store.repository[INTERNALS];
    const registry = { ...provisionerKey(records.namespaceId), SK: "#ENTITY_CONFIG_RESOURCES" };
    await records.store.put({ ...registry, "gpt-4": "not a number" });
    const ran = await store.run("limits", "apply", "-f", fileOf(manifest(store)));
    expect(ran.code).not.toBe(0);
    expect(ran.err).toContain("entity user-1/gpt-4: ");
    expect(ran.out).toContain("3 created, 0 updated, 0 deleted, 1 not done");
    await records.store.delete(registry);
    const again = await store.json<Applied>("limits", "apply", "-f", fileOf(manifest(store)));
    expect(again).toMatchObject({ created: 1, errors: [] });
  });

  test("a list, and a file without a namespace, are refused with their lines (op 39, 44)", async () => {
    const list = await store.run("limits", "plan", "-f", fileOf("- a\n- b\n"));
    expect(list.code).toBe(1);
    expect(list.err).toMatch(/limits-\d+\.yaml:1:1: expected a mapping, got an array/);
    const nameless = fileOf("resources:\n  gpt-4: { limits: { rpm: { capcity: 1 } } }\n");
    const ran = await store.run("limits", "apply", "-f", nameless);
    expect(ran.code).toBe(1);
    expect(ran.err).toContain(":1:1: the namespace is missing");
    expect(ran.err).toMatch(/:2:29: .*there is no "capcity" here/);
  });

  test("a store that does not answer is exit 4, and a missing file exit 1 (op 40)", async () => {
    const url = "dynamodb://app?endpoint=http://127.0.0.1:9";
    const file = fileOf(manifest(store));
    const down = await store.run("limits", "plan", "-f", file, "--url", url, "--timeout", "0.3");
    expect(down.code).toBe(4);
    const missing = await store.run("limits", "plan", "-f", join(folder, "nowhere.yaml"));
    expect([missing.code, missing.out]).toEqual([1, ""]);
  });

  test("a namespace that is not there is planned for, and registered by apply (op 41)", async () => {
    const namespace = `${store.namespace}-new`;
    const file = fileOf({ namespace, resources: { "gpt-4": rpm(5) } });
    const plan = await store.run("limits", "plan", "-f", file);
    expect(plan.out).toContain(`Apply registers the namespace ${namespace}`);
    expect(await store.repository.namespaces.get(namespace)).toBeUndefined();
    expect(await store.json("limits", "apply", "-f", file)).toMatchObject({
      namespace,
      created: 1,
    });
    const scoped = await store.repository.namespace(namespace);
    expect(await scoped.limits.listResources()).toEqual(["gpt-4"]);
  });

  test("cfn-template has the numbers of a limit, defaults filled in, no burst (op 42, 43)", async () => {
    const limits = {
      a: { capacity: 1000, refill_amount: 100, refill_period: 60 },
      b: { capacity: 1000 },
      c: { capacity: 1000, burst: 1500 },
    };
    const file = fileOf({ namespace: "n", system: { limits } });
    const { code, out } = await store.run("limits", "cfn-template", "-n", "app", "-f", file);
    expect(code).toBe(0);
    const template = parse(out) as {
      Resources: { TenantLimits: { Properties: { System: { Limits: object } } } };
    };
    expect(template.Resources.TenantLimits.Properties.System.Limits).toEqual({
      a: { Capacity: 1000, RefillAmount: 100, RefillPeriod: 60 },
      b: { Capacity: 1000, RefillAmount: 1000, RefillPeriod: 60 },
      c: { Capacity: 1500, RefillAmount: 1500, RefillPeriod: 60 },
    });
  });

  test("two applies at once run one after the other, and leave nothing behind", async () => {
    const one = fileOf(manifest(store, 5, ["a", "b"]));
    const other = fileOf(manifest(store, 6, ["b", "c"]));
    const both = await Promise.all(
      [one, other].map((file) => store.run("limits", "apply", "-f", file)),
    );
    expect(both.map(({ code }) => code)).toEqual([0, 0]);
    const resources = await store.repository.limits.listResources();
    expect(["a b", "b c"]).toContain(resources.join(" "));
    const winner = resources.includes("a") ? one : other;
    expect((await store.run("limits", "diff", "-f", winner)).code).toBe(0);
    const empty = fileOf({ namespace: store.namespace });
    expect(await store.json("limits", "apply", "-f", empty)).toMatchObject({ deleted: 4 });
    expect(await store.repository.limits.listResources()).toEqual([]);
  });

  test("export writes the file, and applying that has nothing to change", async () => {
    const { limits } = store.repository;
    await limits.setSystem(["rpm:10"], { onUnavailable: "allow" });
    await limits.setEntity("007", ["tph:5/hour:7"]);
    const file = join(folder, `exported-${store.namespace}.yaml`);
    expect(await store.run("limits", "export", "-f", file)).toEqual({
      code: 0,
      out: `Wrote ${file}\n`,
      err: "",
    });
    const text = readFileSync(file, "utf8");
    expect((await store.run("limits", "export")).out).toBe(text);
    const applied = await store.json("limits", "apply", "-f", file);
    expect(applied).toMatchObject({ created: 0, updated: 0, deleted: 0, unchanged: 2 });
    const piped = await store.run("limits", "diff", "-f", "-", { input: text });
    expect(piped.code).toBe(0);
  });
});
