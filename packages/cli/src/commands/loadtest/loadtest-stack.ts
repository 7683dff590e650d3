/** `loadtest deploy`, `push`, `list` and `delete`: the workers on AWS. */

import type { AwsConnection } from "@zae-limiter/aws/index.ts";
import { CommandFailure, leaf, type OptionSpec } from "../../frame/command.ts";
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
}

const FILES_OPTION: OptionSpec = {
  flags: "-f, --file <file>",
  text: "a scenario for the workers; repeatable",
  repeat: true,
  required: true,
};

export const loadtestDeploy = leaf<PushOptions & { readonly memory?: number }>({
  name: "deploy",
  summary: "adds Lambda workers for load tests to a stack",
  details:
    "Creates the stack {name}-load: one Lambda function, its role and its logs. Nothing in it runs " +
    "or costs anything while no test runs.",
  options: [
    ...NAMED_STACK_OPTIONS,
    FILES_OPTION,
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
    const { stackName: name, connection } = stackPlace(options, terminal);
    const { deployLoadStack, loadStackName } = await import("@zae-limiter/aws/stack/load-stack.ts");
    const { bundleScenarios } = await import("../../loadtest/bundle.ts");
    const loadStack = loadStackName(name);
    const zip = await bundleScenarios(options.file);
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
        `  Run: ${storeHint("loadtest", "run", "-f", options.file[0] ?? "", "--lambda", "--workers", "4")}`,
    };
  },
});

export const loadtestPush = leaf<PushOptions>({
  name: "push",
  summary: "updates the code and the scenarios of Lambda workers",
  options: [...NAMED_STACK_OPTIONS, FILES_OPTION],
  examples: ["loadtest push --name my-app -f max-rps.mjs -f simple.mjs"],
  json: { function: "text", changed: "boolean", size_bytes: "number" },
  run: async ({ options, terminal }) => {
    const { stackName: name, connection } = stackPlace(options, terminal);
    const { loadStackName, pushLoadCode } = await import("@zae-limiter/aws/stack/load-stack.ts");
    const { bundleScenarios } = await import("../../loadtest/bundle.ts");
    loadStackName(name);
    const zip = await bundleScenarios(options.file);
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
