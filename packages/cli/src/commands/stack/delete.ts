/** `stack delete`: deletes a stack. */

import { CommandFailure, leaf } from "../../frame/command.ts";
import { type NamedStack, stackAt, stackHint } from "../../frame/hint.ts";
import { Interrupted, interruptible } from "../../terminal/interruption.ts";
import { NAMED_STACK_OPTIONS, type StackPlaceOptions, stackPlace } from "./deploy-place.ts";

export const deleteStack = leaf<StackPlaceOptions & { wait?: boolean; withData?: true }>({
  name: "delete",
  summary: "deletes a stack; its table and its archive stay",
  details:
    "A missing stack is no error. The table and the archive are kept unless --with-data is given; " +
    "a later deploy under the same name uses the kept table.",
  options: [
    ...NAMED_STACK_OPTIONS,
    { flags: "--with-data", text: "also delete the table and the archive, for good" },
    { flags: "--wait", text: "wait until the stack is gone (default)" },
    { flags: "--no-wait", text: "start it and return" },
  ],
  confirms: true,
  examples: ["stack delete --name my-app", "stack delete --name my-app --with-data --yes"],
  json: {
    outcome: "text",
    stack_name: "text",
    kept: { table: "text | null", bucket: "text | null" },
    table_deleted: "boolean",
  },
  run: async ({ options, terminal, agree, note }) => {
    const { stackName, connection } = stackPlace(options, terminal);
    const stack = stackAt(stackName, options);
    const withData = options.withData === true;
    const wait = options.wait !== false;
    if (withData && !wait) {
      throw new CommandFailure("--with-data has to wait for the stack: leave out --no-wait");
    }
    const what = withData ? `stack ${stackName} with ALL its data` : `stack ${stackName}`;
    await agree(`Delete the ${what}?`, "deleted");
    const infra = await import("@zae-limiter/aws/stack/delete.ts");
    const { outcome, kept, tableDeleted } = await interruptible(terminal, (signal) =>
      infra.deleteStack({
        stackName,
        connection,
        withData,
        wait,
        signal,
        onStep: (step) => note(`${step} …`),
        onEvent: ({ status, type, resource }) => note(`  ${status} ${type} ${resource}`),
      }),
    ).catch((error: unknown) => {
      if (error instanceof Interrupted) {
        note(
          `CloudFormation continues what it has begun. Follow it with: ${stackHint(["status"], stack)}` +
            `${withData ? `. Delete the data with: ${stackHint(["delete", "--with-data"], stack)}` : ""}`,
        );
      }
      throw error;
    });
    const { table = null, bucket = null } = kept;
    return {
      json: () => ({
        outcome,
        stack_name: stackName,
        kept: { table, bucket },
        table_deleted: tableDeleted,
      }),
      text: () =>
        [
          headline(outcome, stack),
          ...keptLines(table, bucket),
          ...(tableDeleted ? [`  Deleted: table ${stackName} with everything in it`] : []),
          ...(withData && outcome === "missing" ? [archiveLine(stackName)] : []),
        ].join("\n"),
    };
  },
});

function headline(outcome: "deleted" | "started" | "missing", stack: NamedStack): string {
  if (outcome === "missing") return `There is no stack ${stack.name}`;
  if (outcome === "deleted") return `✓ Stack ${stack.name} is deleted`;
  return `Deletion of stack ${stack.name} has started. Follow it with: ${stackHint(["status"], stack)}`;
}

/** Returns a line on the archive: its name ends in random characters that only the stack had. */
function archiveLine(stackName: string): string {
  return (
    "  Not searched for: the archive of an earlier stack, which is a bucket whose name begins " +
    `with ${stackName.toLowerCase()}-auditarchivebucket-`
  );
}

function keptLines(table: string | null, bucket: string | null): string[] {
  return [
    ...(table === null ? [] : [`  Kept: table ${table}`]),
    ...(bucket === null ? [] : [`  Kept: archive ${bucket}`]),
  ];
}
