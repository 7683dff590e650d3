/** `loadtest deploy`, `push`, `list` and `delete`: the workers on AWS. */

import { readdirSync } from "node:fs";
import { resolve } from "node:path";
import type { AwsConnection } from "@zae-limiter/aws/index.ts";
import { CommandFailure, leaf, type OptionSpec, UsageError } from "../../frame/command.ts";
import { STACK_OPTIONS } from "../../store/store-options.ts";
import { interruptible } from "../../terminal/interruption.ts";
import { wholeNumber } from "../../terminal/numbers.ts";
import { table } from "../../terminal/table.ts";
import {
  connectionOf,
  NAMED_STACK_OPTIONS,
  type StackPlaceOptions,
  stackPlace,
} from "../stack/deploy-place.ts";

interface PushOptions extends StackPlaceOptions {
  readonly file: readonly string[];
  readonly folder?: string;
}

const FILES_OPTIONS: readonly OptionSpec[] = [
  {
    flags: "-f, --file <file>",
    text: "a scenario for the workers; repeatable",
    repeat: true,
  },
  {
    flags: "-C, --folder <folder>",
    text: "the folder of the scenarios; without -f, all JavaScript and TypeScript files in it",
  },
];

const SCENARIO_NAME = /\.[cm]?[jt]s$/;
const NO_SCENARIO = /\.d\.[cm]?ts$|\.(?:test|spec)\.[cm]?[jt]s$/;

/** Returns the scenarios that the options name, before anything is built. */
function scenariosOf({ file, folder }: PushOptions): readonly string[] {
  if (folder === undefined) {
    if (file.length > 0) return file;
    throw new UsageError("Expected a scenario (-f max-rps.mjs) or a folder of them (-C scenarios)");
  }
  if (file.length > 0) return file.map((name) => resolve(folder, name));
  let names: readonly string[];
  try {
    names = readdirSync(folder);
  } catch (error) {
    const { message } = error as Error;
    throw new CommandFailure(`Cannot read the folder ${folder}: ${message}`, 1, { cause: error });
  }
  const found = names.filter((name) => SCENARIO_NAME.test(name) && !NO_SCENARIO.test(name)).sort();
  if (found.length > 0) return found.map((name) => resolve(folder, name));
  throw new CommandFailure(`There is no JavaScript or TypeScript file in ${folder}`);
}

export const loadtestDeploy = leaf<PushOptions & { readonly memory?: number }>({
  name: "deploy",
  summary: "adds Lambda workers for load tests to a stack",
  details:
    "Creates the stack {name}-load: one Lambda function, its role and its logs. Nothing in it runs " +
    "or costs anything while no test runs.",
  options: [
    ...NAMED_STACK_OPTIONS,
    ...FILES_OPTIONS,
    {
      flags: "--memory <megabytes>",
      text: "of a worker; 1769 are one processor",
      parse: wholeNumber(128, 10_240),
    },
  ],
  confirms: true,
  examples: ["loadtest deploy --name my-app -f max-rps.mjs -f simple.mjs"],
  json: { outcome: "text", stack_name: "text", function: "text" },
  run: async ({ options, terminal, confirm, note, storeHint }) => {
    const scenarios = scenariosOf(options);
    const { stackName: name, connection } = stackPlace(options, terminal);
    const { deployLoadStack, loadStackName } = await import("@zae-limiter/aws/stack/load-stack.ts");
    const { bundleScenarios } = await import("../../loadtest/bundle.ts");
    const loadStack = loadStackName(name);
    const zip = await bundleScenarios(scenarios);
    const deployed = await interruptible(terminal, (signal) =>
      deployLoadStack({
        name,
        connection,
        zip,
        memoryMegabytes: options.memory,
        signal,
        confirm: async (kind) => {
          note(`Stack ${loadStack}: a Lambda function, its role for the table ${name}, its logs.`);
          note("It costs nothing while no test runs; each run shows its own estimate.");
          return confirm(`${kind === "create" ? "Create" : "Change"} the stack ${loadStack}?`);
        },
        onStep: (step) => note(`${step} …`),
        onEvent: ({ status, type, resource }) => note(`  ${status} ${type} ${resource}`),
      }),
    );
    if (deployed.outcome === "declined") throw new CommandFailure("Aborted: nothing was deployed");
    return {
      json: () => ({
        outcome: deployed.outcome,
        stack_name: deployed.stackName,
        function: deployed.functionName,
      }),
      text: () =>
        `✓ Stack ${deployed.stackName} is ${deployed.outcome}\n` +
        `  Run: ${storeHint("loadtest", "run", "-f", scenarios[0] ?? "", "--lambda", "--workers", "4")}`,
    };
  },
});

export const loadtestPush = leaf<PushOptions>({
  name: "push",
  summary: "updates the code and the scenarios of Lambda workers",
  options: [...NAMED_STACK_OPTIONS, ...FILES_OPTIONS],
  examples: [
    "loadtest push --name my-app -f max-rps.mjs -f simple.mjs",
    "loadtest push --name my-app -C scenarios",
  ],
  json: { function: "text", changed: "boolean", size_bytes: "number" },
  run: async ({ options, terminal }) => {
    const scenarios = scenariosOf(options);
    const { stackName: name, connection } = stackPlace(options, terminal);
    const { loadStackName, pushLoadCode } = await import("@zae-limiter/aws/stack/load-stack.ts");
    const { bundleScenarios } = await import("../../loadtest/bundle.ts");
    loadStackName(name);
    const zip = await bundleScenarios(scenarios);
    const { functionName, changed } = await pushLoadCode(name, zip, connection);
    const kilobytes = (zip.length / 1024).toFixed(1);
    return {
      json: () => ({ function: functionName, changed, size_bytes: zip.length }),
      text: () =>
        changed
          ? `✓ ${functionName}: ${kilobytes} KB`
          : `${functionName} has this code already (${kilobytes} KB)`,
    };
  },
});

export const loadtestList = leaf<StackPlaceOptions>({
  name: "list",
  summary: "lists the stacks with Lambda workers of a region",
  options: STACK_OPTIONS.filter(({ flags }) => !flags.startsWith("-n,")),
  examples: ["loadtest list --region eu-west-1"],
  json: {
    region: "text",
    stacks: [{ name: "text", stack_name: "text", status: "text", created: "text" }],
  },
  run: async ({ options, terminal }) => {
    const connection = connectionOf(options, terminal) as AwsConnection;
    const [{ limitersThere }, { LOAD_STACK_TYPE }] = await Promise.all([
      import("@zae-limiter/aws/stack/discovery.ts"),
      import("@zae-limiter/aws/stack/load-stack.ts"),
    ]);
    const { region, limiters } = await limitersThere(connection);
    const stacks = limiters.filter(({ stackType }) => stackType === LOAD_STACK_TYPE);
    return {
      json: () => ({
        region,
        stacks: stacks.map((info) => ({
          name: info.userName,
          stack_name: info.stackName,
          status: info.stackStatus,
          created: info.creationTime,
        })),
      }),
      text: async () => {
        if (stacks.length === 0) return `No stacks with workers in ${region}`;
        const titles = ["Tests", "Stack", "Status", "Created"];
        const rows = stacks.map(({ userName, stackName, stackStatus, creationTime }) => [
          userName,
          stackName,
          stackStatus,
          creationTime.slice(0, 10),
        ]);
        return table(titles, rows, terminal.palette.faint);
      },
    };
  },
});

export const loadtestDelete = leaf<StackPlaceOptions>({
  name: "delete",
  summary: "deletes the Lambda workers of a stack",
  details: "The tested stack and its table stay. Missing workers are no error.",
  options: NAMED_STACK_OPTIONS,
  confirms: true,
  examples: ["loadtest delete --name my-app --yes"],
  json: { outcome: "text", stack_name: "text" },
  run: async ({ options, terminal, agree, note }) => {
    const { stackName: name, connection } = stackPlace(options, terminal);
    const { loadStackName } = await import("@zae-limiter/aws/stack/load-stack.ts");
    const stackName = loadStackName(name);
    await agree(`Delete the stack ${stackName}?`, "deleted");
    const { deleteStack } = await import("@zae-limiter/aws/stack/delete.ts");
    const { outcome } = await interruptible(terminal, (signal) =>
      deleteStack({
        stackName,
        connection,
        signal,
        onEvent: ({ status, type, resource }) => note(`  ${status} ${type} ${resource}`),
      }),
    );
    return {
      json: () => ({ outcome, stack_name: stackName }),
      text: () =>
        outcome === "missing"
          ? `There is no stack ${stackName}`
          : `✓ Stack ${stackName} is deleted`,
    };
  },
});
