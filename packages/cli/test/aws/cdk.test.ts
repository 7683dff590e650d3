/** The construct: the resources of the template, in a stack of the user. */

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { ZaeLimiter, type ZaeLimiterProps, ZaeLimits } from "@zae-limiter/aws/cdk.ts";
import type { CfnResource } from "@zae-limiter/aws/template/cfn.ts";
import { stackTemplate } from "@zae-limiter/aws/template/template.ts";
import { manifestFromProperties } from "@zae-limiter/limiter/manifest/cfn.ts";
import { parseManifest } from "@zae-limiter/limiter/manifest/parse-manifest.ts";
import { App, Stack } from "aws-cdk-lib";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { describeAws } from "./aws.ts";

/** Without Lambdas, whose code a checkout may not have built. */
const PLAIN = { enableAggregator: false, enableProvisioner: false } as const;

interface Synthesized {
  readonly Resources: Readonly<Record<string, CfnResource>>;
  readonly Outputs?: Readonly<Record<string, { Value: unknown; Export?: { Name: string } }>>;
}

describe("ZaeLimiter", () => {
  let outdir = "";
  beforeAll(() => {
    outdir = mkdtempSync(join(tmpdir(), "zae-limiter-cdk-"));
  });
  afterAll(() => rmSync(outdir, { recursive: true, force: true }));

  function synthesize(...limiters: ZaeLimiterProps[]): Synthesized {
    const app = new App({ outdir: mkdtempSync(join(outdir, "out-")) });
    const stack = new Stack(app, "Backend");
    for (const [index, props] of limiters.entries()) new ZaeLimiter(stack, `L${index}`, props);
    return app.synth().getStackByName("Backend").template as Synthesized;
  }

  const ofType = ({ Resources }: Synthesized, type: string) =>
    Object.values(Resources).filter((resource) => resource.Type === type);

  test("ZaeLimiter has the table, the policies and the alarms, under the name it was given", () => {
    const made = synthesize({ name: "my-app", ...PLAIN, createIamRoles: true });
    const [table] = ofType(made, "AWS::DynamoDB::Table");
    expect(table).toMatchObject({
      DeletionPolicy: "RetainExceptOnCreate",
      UpdateReplacePolicy: "Retain",
      Properties: { TableName: "my-app", BillingMode: "PAY_PER_REQUEST" },
    });
    const expected = stackTemplate().Resources.LimiterTable?.Properties.AttributeDefinitions;
    expect(table?.Properties.AttributeDefinitions).toEqual(expected);
    const policies = ofType(made, "AWS::IAM::ManagedPolicy");
    expect(policies.map(({ Properties }) => Properties.ManagedPolicyName)).toContain(
      "my-app-ns-acq",
    );
    expect(ofType(made, "AWS::IAM::Role")).toHaveLength(3);
    expect(ofType(made, "AWS::CloudWatch::Alarm")).toHaveLength(3);
    const exported = Object.values(made.Outputs ?? {}).map((output) => output.Export?.Name);
    expect(exported).toContain("my-app-TableName");
  });

  test("ZaeLimiter refers to its own resources, also where a text does", () => {
    const made = synthesize({ name: "my-app", ...PLAIN });
    const ids = new Set(Object.keys(made.Resources));
    const text = JSON.stringify(made.Resources);
    const references = [
      ...text.matchAll(/"Fn::GetAtt":\["(\w+)"/g),
      ...text.matchAll(/"Ref":"(\w+)"/g),
    ].map(([, name]) => name ?? "");
    expect(references.length).toBeGreaterThan(10);
    expect(references.filter((name) => !ids.has(name))).toEqual([]);
    expect(text).not.toMatch(/"(Ref|Fn::If|Condition)":"(Has|Enable|Deploy)/);
    expect(text).toContain(`\${aws:PrincipalTag/zael_namespace_id}/*`);
    expect(text).toMatch(/\$\{LimiterTableArn\}\/index\/GSI4/);
  });

  test("two of them have room in one stack", () => {
    const made = synthesize({ name: "one", ...PLAIN }, { name: "two", ...PLAIN });
    const names = ofType(made, "AWS::DynamoDB::Table").map(
      ({ Properties }) => Properties.TableName,
    );
    expect(names).toEqual(["one", "two"]);
  });

  test("tags go to what can be tagged", () => {
    const made = synthesize({ name: "my-app", ...PLAIN, tags: { team: "search" } });
    const [table] = ofType(made, "AWS::DynamoDB::Table");
    expect(table?.Properties.Tags).toEqual([
      { Key: "Application", Value: "zae-limiter" },
      { Key: "team", Value: "search" },
    ]);
  });

  test("names and options are checked, and what is not there is said", () => {
    const stack = new Stack(new App({ outdir: mkdtempSync(join(outdir, "out-")) }), "Backend");
    expect(() => new ZaeLimiter(stack, "A", { name: "my_app" })).toThrow(/underscore/);
    expect(() => new ZaeLimiter(stack, "B", { name: "abc", lambdaTimeout: 0 })).toThrow(
      /lambdaTimeout/,
    );
    expect(() => new ZaeLimiter(stack, "D", { name: "a".repeat(56) })).toThrow(/55 character/);
    const bare = new ZaeLimiter(stack, "C", { name: "bare", ...PLAIN, createIam: false });
    expect(bare.tableName).toBe("bare");
    expect(() => bare.policyArn("acq")).toThrow(/no AcquireOnlyPolicy with these options/);
  });
});

const LIMITS = {
  namespace: "default",
  resources: {
    api: {
      limits: ["req:10000/month@15 Europe/Berlin", "tok:9/session:5hour", "slots:20 concurrent"],
    },
    "007": {
      limits: { rpm: { capacity: 9, schedule: [{ when: "mon-fri 9-18", scale: 0.5 }] } },
    },
  },
};

const resourcesOf = (app: App, stack: string) =>
  Object.entries((app.synth().getStackByName(stack).template as Synthesized).Resources);

async function shippedIn(build: string) {
  const { href } = pathToFileURL(join(build, "aws", "cdk.js"));
  return (await import(href)) as typeof import("@zae-limiter/aws/cdk.ts");
}

describe("ZaeLimits", () => {
  test("quotas, sessions, windows and slots are in the resource that the stack of a name serves", () => {
    const app = new App({ outdir: mkdtempSync(join(tmpdir(), "zae-limiter-cdk-")) });
    const stack = new Stack(app, "Limits");
    new ZaeLimits(stack, "Limits", { limiter: "my-app", limits: LIMITS, full: true });
    const [[, made] = []] = resourcesOf(app, "Limits");
    expect(made?.Type).toBe("Custom::ZaeLimiterLimits");
    const { ServiceToken, ...properties } = made?.Properties ?? {};
    expect(ServiceToken).toEqual({ "Fn::ImportValue": "my-app-ProvisionerArn" });
    expect(properties).toMatchObject({ TableName: "my-app", FullApply: true });
    expect(manifestFromProperties(properties)).toEqual(parseManifest(JSON.stringify(LIMITS)));
    rmSync(app.outdir, { recursive: true });
  });

  test("wrong limits fail the synthesis, and so does a limiter that applies none", () => {
    const stack = new Stack(new App(), "Limits");
    const make = (id: string, limit: string) =>
      new ZaeLimits(stack, id, {
        limiter: "my-app",
        limits: { namespace: "n", system: { limits: [limit] } },
      });
    expect(() => make("A", "req:5/month@31")).toThrow(
      /system.limits.*not every month has a day 31/,
    );
    const bare = new ZaeLimiter(stack, "L", { name: "bare", ...PLAIN });
    expect(() => new ZaeLimits(stack, "B", { limiter: bare, limits: LIMITS })).toThrow(
      /no ProvisionerFunction with these options/,
    );
  });
});

await describeAws("ZaeLimiter as it is shipped", ({ build }) => {
  test("the shipped ZaeLimiter has the code of its Lambdas as assets", async () => {
    const shipped = await shippedIn(build);
    const outdir = mkdtempSync(join(tmpdir(), "zae-limiter-cdk-"));
    const said = vi.spyOn(console, "error");
    const written = vi.spyOn(process.stderr, "write");
    const app = new App({ outdir });
    const stack = new Stack(app, "Backend");
    new shipped.ZaeLimiter(stack, "Limiter", { name: "my-app", pitrRecoveryDays: 7 });
    const assembly = app.synth();
    // The CDK checks what it is given, and finds nothing to warn of.
    expect([said.mock.calls, written.mock.calls]).toEqual([[], []]);
    vi.restoreAllMocks();
    const { Resources } = assembly.getStackByName("Backend").template as Synthesized;
    const functions = Object.values(Resources).filter(
      ({ Type }) => Type === "AWS::Lambda::Function",
    );
    expect(functions.map(({ Properties }) => Properties.FunctionName)).toEqual([
      "my-app-aggregator",
      "my-app-limits-provisioner",
    ]);
    const keys = functions.map(({ Properties }) => (Properties.Code as { S3Key: string }).S3Key);
    for (const key of keys) {
      const zip = readFileSync(join(outdir, `asset.${key}`));
      expect(zip.subarray(0, 2).toString()).toBe("PK");
    }
    expect(new Set(keys).size).toBe(2);
    rmSync(outdir, { recursive: true, force: true });
  });

  test("ZaeLimits refers to a limiter of the app, also from another stack, and is made after it", async () => {
    const { ZaeLimiter, ZaeLimits } = await shippedIn(build);
    const app = new App({ outdir: mkdtempSync(join(tmpdir(), "zae-limiter-cdk-")) });
    const limiter = new ZaeLimiter(new Stack(app, "Backend"), "Limiter", { name: "my-app" });
    const text = "namespace: default\nsystem: { limits: ['req:5/week@sunday Asia/Tokyo'] }";
    const here = new ZaeLimits(Stack.of(limiter), "Here", { limiter, limits: text });
    const away = new Stack(app, "Limits");
    new ZaeLimits(away, "Away", { limiter, limits: text });
    const own = resourcesOf(app, "Backend").find(([, { Type }]) => Type.startsWith("Custom::"));
    expect(own?.[1].Properties).toMatchObject({
      ServiceToken: { "Fn::GetAtt": [expect.stringMatching(/^LimiterProvisionerFunction/), "Arn"] },
      TableName: "my-app",
      System: { Limits: { req: { Quota: { Amount: 5, Every: "week", On: "sunday" } } } },
    });
    expect([own?.[1].DependsOn].flat().length).toBeGreaterThan(10);
    expect(here.node.id).toBe("Here");
    const [[, other] = []] = resourcesOf(app, "Limits");
    expect(JSON.stringify(other?.Properties.ServiceToken)).toContain("Fn::ImportValue");
    expect(away.dependencies.map(({ stackName }) => stackName)).toEqual(["Backend"]);
    rmSync(app.outdir, { recursive: true });
  });
});
