/** `stack upgrade`: brings a stack to the version of this client. */

import type { Upgraded, UpgradePlan } from "@zae-limiter/aws/index.ts";
import { defined } from "@zae-limiter/limiter/base/defined.ts";
import { CLIENT_VERSION } from "@zae-limiter/limiter/domain/version.ts";
import { tableOf } from "@zae-limiter/limiter/repository/stores/dynamodb.ts";
import { placeName } from "@zae-limiter/limiter/repository/stores/stores.ts";
import { CommandFailure, leaf } from "../../frame/command.ts";
import { EXIT } from "../../frame/exit-codes.ts";
import { type NamedStack, stackHint } from "../../frame/hint.ts";
import { STACK_OPTIONS, storePlace } from "../../store/store-options.ts";
import { interruptible } from "../../terminal/interruption.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import { connectionOf, type StackPlace, type StackPlaceOptions } from "./deploy-place.ts";

export const upgrade = leaf<StackPlaceOptions & { lambdaOnly?: true; force?: true; dryRun?: true }>(
  {
    name: "upgrade",
    summary: "brings the code and the table of a stack to this version",
    details:
      "Uploads the code of the Lambdas, adds missing tags, migrates the table, and writes its " +
      "version. It leaves the template of the stack alone, which deploy changes. Without --name it " +
      "works on the table in ZAEL_URL, like status.",
    options: [
      ...STACK_OPTIONS,
      { flags: "--lambda-only", text: "only the code of the Lambdas" },
      {
        flags: "--force",
        text: "also what is up to date or newer, and a table without a version record",
      },
      { flags: "--dry-run", text: "shows what would be done, and writes nothing" },
    ],
    confirms: true,
    examples: ["stack upgrade --name my-app --dry-run", "stack upgrade --name my-app --yes"],
    json: {
      outcome: "text",
      stack_name: "text",
      code: ["text"],
      tags_added: "boolean | null",
      schema_version: "text | null",
      migrations: [{ version: "text", description: "text", scanned: "number", changed: "number" }],
    },
    run: async ({ options, terminal, confirm, note, progress }) => {
      const { stackName, connection, stack } = tablePlace(options, terminal);
      const { upgradeStack } = await import("@zae-limiter/aws/deploy/upgrade.ts");
      const result = await interruptible(terminal, async (signal) => {
        const upgraded = await upgradeStack({
          stackName,
          connection,
          signal,
          lambdaOnly: options.lambdaOnly === true,
          force: options.force === true,
          dryRun: options.dryRun === true,
          updatedBy: `cli:${CLIENT_VERSION}`,
          confirm: (plan) => {
            for (const line of planLines(plan)) note(line);
            return confirm(`Upgrade the ${subjectOf(plan).toLowerCase()} ${stackName}?`);
          },
          onStep: (step) => note(`${step} …`),
          onProgress: ({ migration, scanned, changed }) =>
            progress(`  ${migration}: ${scanned} items read, ${changed} changed`),
        });
        if (upgraded.outcome !== "stopped") return upgraded;
        note(stoppedText(upgraded, stack));
        throw signal.reason;
      });
      if (result.outcome === "uninitialised") {
        throw new CommandFailure(
          `The table ${stackName} has no version record. Run: ${stackHint(["deploy"], stack)}. ` +
            `For a stack that other tools created: ${stackHint(["upgrade", "--force"], stack)}`,
        );
      }
      for (const line of [...result.plan.notes, ...upgradeWarnings(result)]) note(line);
      return {
        json: () => toJson(result, stackName),
        text: () => upgradeText(result, stack),
        code: result.outcome === "declined" ? EXIT.failed : EXIT.ok,
      };
    },
  },
);

/** Returns the table that status, version and check are about; a file needs no upgrade. */
function tablePlace(
  options: StackPlaceOptions,
  terminal: Terminal,
): StackPlace & { readonly stack: NamedStack } {
  const { location } = storePlace(options, terminal);
  const found = tableOf(location);
  if (found === undefined) {
    throw new CommandFailure(
      `upgrade needs a table on DynamoDB, and ${placeName(location)} is not one. For a stack on ` +
        "AWS, pass --name or set ZAEL_STACK",
    );
  }
  const { table, region, endpoint } = found;
  return {
    stackName: table,
    connection: connectionOf(defined({ region, endpointUrl: endpoint }), terminal),
    stack: { name: table, region, endpoint },
  };
}

function planLines({ code, tags, migrations, record }: UpgradePlan): string[] {
  return [
    ...code.map((lambda) => `~ code of the ${lambda}`),
    ...(tags ? ["~ tags of the stack"] : []),
    ...migrations.pending.map(({ version, description }) => `~ schema ${version}: ${description}`),
    ...(record ? ["~ version record"] : []),
  ];
}

/** Returns the failures that do not affect the rest of the upgrade. */
export function upgradeWarnings({ tagsError }: Upgraded): string[] {
  if (tagsError === undefined) return [];
  return [`Warning: the tags of the stack could not be set: ${tagsError.message}`];
}

/** Returns the text for a stopped upgrade: finished steps stay. */
function stoppedText({ migrations }: Upgraded, stack: NamedStack): string {
  if (migrations?.dryRun === true) return "Stopped: nothing was changed";
  const last = migrations?.migrations.at(-1);
  const done = `${last?.scanned ?? 0} items read, ${last?.changed ?? 0} changed`;
  return `Stopped on the way to ${last?.version}: ${done}. Continue with: ${stackHint(["upgrade"], stack)}`;
}

export function upgradeText(result: Upgraded, stack: NamedStack): string {
  const { outcome, plan, migrations } = result;
  const { name: stackName } = stack;
  const changed = (migrations?.migrations ?? []).map(
    (done) => `  ${done.version}: ${done.scanned} items read, ${done.changed} changed`,
  );
  switch (outcome) {
    case "current":
      return plan.migrationsLeft.length === 0
        ? `✓ ${subjectOf(plan)} ${stackName} is up to date with ${CLIENT_VERSION}`
        : [`✓ The code is up to date with ${CLIENT_VERSION}`, ...leftLines(plan, stack)].join("\n");
    case "declined":
      return "Cancelled: nothing was changed";
    case "planned":
      return ["Would do:", ...planLines(plan).map((line) => `  ${line}`), ...changed].join("\n");
    default:
      return [
        `✓ ${subjectOf(plan)} ${stackName} is upgraded to ${CLIENT_VERSION}`,
        ...plan.code.map((lambda) => `  Code of the ${lambda}: uploaded`),
        ...tagsLine(result),
        ...changed,
        ...leftLines(plan, stack),
      ].join("\n");
  }
}

/** Returns the subject: behind an endpoint that has only DynamoDB there is a table and no stack. */
function subjectOf({ hasStacks }: UpgradePlan): string {
  return hasStacks ? "Stack" : "Table";
}

function tagsLine({ tagsAdded, tagsError }: Upgraded): string[] {
  if (tagsError !== undefined) return ["  Tags: missing"];
  if (tagsAdded === undefined) return [];
  return [`  Tags: ${tagsAdded ? "added" : "already present"}`];
}

/** Returns lines on migrations that are left: with `--lambda-only` the table is not migrated. */
function leftLines({ migrations, migrationsLeft }: UpgradePlan, stack: NamedStack): string[] {
  if (migrationsLeft.length === 0) return [];
  const schema = migrations.schemaVersion ?? "no version";
  return [`  The table has schema ${schema}. Migrate it with: ${stackHint(["upgrade"], stack)}`];
}

function toJson({ outcome, plan, tagsAdded, migrations, version }: Upgraded, stackName: string) {
  return {
    outcome,
    stack_name: stackName,
    code: [...plan.code],
    tags_added: tagsAdded ?? null,
    schema_version: version?.schemaVersion ?? plan.migrations.schemaVersion ?? null,
    migrations: (migrations?.migrations ?? []).map(
      ({ version: to, description, scanned, changed }) => ({
        version: to,
        description,
        scanned,
        changed,
      }),
    ),
  };
}
