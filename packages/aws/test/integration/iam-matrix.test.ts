/** Every policy, every action, every kind of key: what is allowed, as one table. */

import { stackParameters } from "@zae-limiter/aws/options/stack-parameters.ts";
import { resolveTemplate } from "@zae-limiter/aws/template/resolve.ts";
import { TABLE } from "@zae-limiter/aws/template/table.ts";
import { stackTemplate } from "@zae-limiter/aws/template/template.ts";
import { arnOf, isAllowed, statementsOf } from "@zae-limiter/test-support/aws/iam/evaluate.ts";
import { expect, test } from "vitest";

const TEMPLATE = resolveTemplate(stackTemplate(), stackParameters({}, "my-app"));
const OWN = { zael_namespace_id: "own" };

const READS = ["GetItem", "BatchGetItem"];
const WRITES = ["PutItem", "UpdateItem"];
const REMOVES = ["DeleteItem", "BatchWriteItem"];
const ACTIONS = [...READS, "Query", "Scan", ...WRITES, ...REMOVES, "ConditionCheckItem"];

/** A key of each kind, in the principal's own namespace, in another, and in the registry. */
const KEYS = {
  bucket: "BUCKET#user-1#gpt-4#0",
  entity: "ENTITY#user-1",
  limits: "RESOURCE#gpt-4",
  system: "SYSTEM#",
  audit: "AUDIT#user-1",
  deletion: "DELETED#user-1",
  note: "NOTE#gateway/secret",
} as const;

/** The kinds of keys that a policy may use an action on. */
function allowed(policy: string, action: string, namespace: string): string[] {
  const statements = statementsOf(TEMPLATE, policy);
  return Object.entries(KEYS).flatMap(([kind, key]) => {
    const access = {
      action: `dynamodb:${action}`,
      resource: arnOf(TABLE),
      leadingKeys: [`${namespace}/${key}`],
    };
    return isAllowed(statements, OWN, access) ? [kind] : [];
  });
}

function table(policy: string, namespace: string): Record<string, string> {
  const rows = ACTIONS.map((action) => [action, allowed(policy, action, namespace).join(" ")]);
  return Object.fromEntries(rows.filter(([, kinds]) => kinds !== ""));
}

const ALL = Object.keys(KEYS).join(" ");
const ACQUIRE = {
  GetItem: "bucket entity limits system deletion note",
  BatchGetItem: "bucket entity limits system deletion note",
  PutItem: "bucket note",
  UpdateItem: "bucket note",
  // For the Python library, which checks the owner of a bucket that it creates.
  ConditionCheckItem: "bucket entity limits system deletion note",
};
const everything = (actions: readonly string[]) =>
  Object.fromEntries(actions.map((action) => [action, ALL]));

test.each([
  ["NamespaceAcquirePolicy", ACQUIRE, {}],
  ["NamespaceReadOnlyPolicy", everything([...READS, "Query"]), {}],
  ["NamespaceFullAccessPolicy", everything(ACTIONS.filter((action) => action !== "Scan")), {}],
  ["AcquireOnlyPolicy", ACQUIRE, ACQUIRE],
  [
    "ReadOnlyPolicy",
    everything([...READS, "Query", "Scan"]),
    everything([...READS, "Query", "Scan"]),
  ],
  ["FullAccessPolicy", everything(ACTIONS), everything(ACTIONS)],
])("%s allows exactly its actions, in its own namespace and in another", (policy, own, other) => {
  expect(table(policy, "own")).toEqual(own);
  expect(table(policy, "another")).toEqual(other);
});

test.each(["NamespaceAcquirePolicy", "NamespaceReadOnlyPolicy", "NamespaceFullAccessPolicy"])(
  "%s may look names up in the registry, and change nothing there",
  (policy) => {
    const inRegistry = ACTIONS.filter((action) => allowed(policy, action, "_").includes("system"));
    const checks = policy === "NamespaceFullAccessPolicy" ? ["ConditionCheckItem"] : [];
    expect(inRegistry).toEqual([...READS, ...checks]);
  },
);

test.each([
  ["AcquireOnlyPolicy", [...READS, ...WRITES, "ConditionCheckItem"]],
  ["NamespaceAcquirePolicy", [...READS, ...WRITES, "ConditionCheckItem"]],
  ["NamespaceFullAccessPolicy", [...READS, "Query", ...WRITES, ...REMOVES, "ConditionCheckItem"]],
  ["NamespaceReadOnlyPolicy", []],
])("%s reads and writes records of processes that hold slots as documented", (policy, expected) => {
  const statements = statementsOf(TEMPLATE, policy);
  const leadingKeys = ["_/HOLDER#p7x2k9"];
  const actions = ACTIONS.filter((action) =>
    isAllowed(statements, OWN, {
      action: `dynamodb:${action}`,
      resource: arnOf(TABLE),
      leadingKeys,
    }),
  );
  expect(actions).toEqual(expected);
});
