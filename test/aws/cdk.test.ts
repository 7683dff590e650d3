/** The construct: the resources of the template, in somebody else's stack. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { App, Stack } from "aws-cdk-lib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ZaeLimiter, type ZaeLimiterProps } from "../../src/infra/cdk.ts";
import type { CfnResource } from "../../src/infra/template/cfn.ts";
import { stackTemplate } from "../../src/infra/template/template.ts";

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

  test("has the table, the policies and the alarms, under the name it was given", () => {
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

  test("refers to its own resources, also where a text does", () => {
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

  test("names and options are checked, and what is not there is said", () => {
    const stack = new Stack(new App({ outdir: mkdtempSync(join(outdir, "out-")) }), "Backend");
    expect(() => new ZaeLimiter(stack, "A", { name: "my_app" })).toThrow(/underscore/);
    expect(() => new ZaeLimiter(stack, "B", { name: "a", lambdaTimeout: 0 })).toThrow(
      /lambda_timeout/,
    );
    const bare = new ZaeLimiter(stack, "C", { name: "bare", ...PLAIN, createIam: false });
    expect(bare.tableName).toBe("bare");
    expect(() => bare.policyArn("acq")).toThrow(/no AcquireOnlyPolicy with these options/);
  });
});
