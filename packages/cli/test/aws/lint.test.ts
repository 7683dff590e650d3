/** AWS's own linter on the template: as it is printed, and with the parameters of every option. */

import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import type { StackOptions } from "@zae-limiter/aws/options/stack-options.ts";
import { stackParameters } from "@zae-limiter/aws/options/stack-parameters.ts";
import { loadTemplate } from "@zae-limiter/aws/template/load.ts";
import { resolveTemplate } from "@zae-limiter/aws/template/resolve.ts";
import { printTemplate, stackTemplate } from "@zae-limiter/aws/template/template.ts";
import { NIGHTLY_ONLY } from "@zae-limiter/test-support/effort.ts";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { describeAws } from "./aws.ts";

const run = promisify(execFile);
const ROLE = "arn:aws:iam::123456789012:role/aggregator";
const TOPIC = "arn:aws:sns:us-east-1:123456789012:alarms";
const KEY = "arn:aws:kms:us-east-1:123456789012:key/0f1e2d3c-1111-2222-3333-444455556666";

/** All that can be switched on; the linter takes seconds for each combination. */
const EVERYTHING: Readonly<Record<string, StackOptions>> = {
  everything: {
    createIamRoles: true,
    enableTracing: true,
    enableDeletionProtection: true,
    kmsKeyArn: KEY,
    alarmEmail: "ops@example.com",
    pitrRecoveryDays: 7,
    permissionBoundary: "PowerUser",
    roleNameFormat: "pb-{}",
    policyNameFormat: "pb-{}",
    gsi2Projection: "ALL",
    snapshotWindows: "hourly,daily,monthly",
  },
};

/** The other combinations with different resources, or different references between them. */
const COMBINATIONS: Readonly<Record<string, StackOptions>> = {
  ...EVERYTHING,
  defaults: {},
  "bare table": { createIam: false, enableAggregator: false, enableAlarms: false },
  "no aggregator": { enableAggregator: false },
  "no alarms": { enableAlarms: false },
  "a dashboard": { enableDashboard: true },
  "no archive": { enableAuditArchival: false, enableTracing: true },
  "role from elsewhere": { createIam: false, aggregatorRoleArn: ROLE },
  "role from elsewhere together with IAM": { aggregatorRoleArn: ROLE, createIamRoles: true },
  "own topic and boundary": {
    alarmSnsTopic: TOPIC,
    permissionBoundary: "arn:aws:iam::aws:policy/PowerUserAccess",
    lambdaArchitecture: "x86_64",
  },
};

/** Python programs are slow on a busy machine. */
vi.setConfig({ testTimeout: 180_000 });

await describeAws("cfn-lint", ({ python }) => {
  let folder = "";
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "zae-limiter-lint-"));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** All findings, of every severity. One run for all files: it takes seconds to start. */
  async function lint(files: Readonly<Record<string, string>>): Promise<string> {
    const paths = Object.entries(files).map(([name, text]) => {
      const path = join(folder, name);
      writeFileSync(path, text);
      return path;
    });
    const options = ["--include-checks", "I", "--format", "parseable", "--"];
    const { stdout } = await run(join(dirname(python), "cfn-lint"), [...options, ...paths]).catch(
      (error: { stdout: string; stderr: string }) => ({ stdout: error.stdout + error.stderr }),
    );
    return stdout.replaceAll(`${folder}/`, "").trim();
  }

  test("cfn-lint finds nothing in the template, whatever the options, and finds a mistake", async () => {
    const template = stackTemplate();
    const yaml = printTemplate(template, "yaml");
    const resolved = Object.entries(NIGHTLY_ONLY ? EVERYTHING : COMBINATIONS).map(
      ([name, options]) => {
        const { Resources } = resolveTemplate(template, stackParameters(options, "my-app"));
        const text = JSON.stringify({ AWSTemplateFormatVersion: "2010-09-09", Resources });
        return [`${name.replaceAll(" ", "-")}.json`, text];
      },
    );
    const findings = await lint({
      "template.yaml": yaml,
      "load.json": printTemplate(loadTemplate(), "json"),
      ...Object.fromEntries(resolved),
      "mistake.yaml": yaml.replace("nodejs22.x", "nodejs12.x"),
    });
    expect(findings).toMatch(/^mistake\.yaml:\d+:\d+:\d+:\d+:E2533:Runtime 'nodejs12\.x'[^\n]*$/);
  });
});
