/** `delete`: takes a stack down. */

import { CommandFailure, leaf } from "../command.ts";
import { Interrupted, interruptible } from "../interruption.ts";
import { NAMED_STACK_OPTIONS, type StackPlaceOptions, stackPlace } from "./deploy-place.ts";

export const deleteStack = leaf<StackPlaceOptions & { wait?: boolean; withData?: true }>({
  name: "delete",
  summary: "deletes a stack; its table and its archive stay",
  details:
    "A stack that is not there is no error. The table and the archive are kept unless --with-data " +
    "is given; deploy under the same name takes a kept table over again.",
  options: [
    ...NAMED_STACK_OPTIONS,
    { flags: "--with-data", text: "deletes the table and the archive, too, for good" },
    { flags: "--wait", text: "until the stack is gone (preset)" },
    { flags: "--no-wait", text: "starts it and ends" },
  ],
  confirms: true,
  examples: ["delete --name my-app", "delete --name my-app --with-data --yes"],
  json: {
    outcome: "text",
    stack_name: "text",
    kept: { table: "text | null", bucket: "text | null" },
    table_deleted: "boolean",
  },
  run: async ({ options, terminal, confirm, note }) => {
    const { stackName, connection } = stackPlace(options, terminal);
    const withData = options.withData === true;
    const wait = options.wait !== false;
    if (withData && !wait) {
      throw new CommandFailure("--with-data has to wait for the stack: leave out --no-wait");
    }
    const what = withData ? `stack ${stackName} with ALL its data` : `stack ${stackName}`;
    if (!(await confirm(`Delete the ${what}?`))) {
      throw new CommandFailure("Aborted: nothing was deleted");
    }
    const { teardown } = await import("../../infra/teardown.ts");
    const { outcome, kept, tableDeleted } = await interruptible(terminal, (signal) =>
      teardown({
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
          "What CloudFormation has begun goes on by itself: see it with zae-limiter status " +
            `--name ${stackName}${withData ? ", and run delete again for the data" : ""}`,
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
          headline(outcome, stackName),
          ...keptLines(table, bucket),
          ...(tableDeleted ? [`  Deleted: table ${stackName} with everything in it`] : []),
          ...(withData && outcome === "missing" ? [archiveLine(stackName)] : []),
        ].join("\n"),
    };
  },
});

function headline(outcome: "deleted" | "started" | "missing", stackName: string): string {
  if (outcome === "missing") return `There is no stack ${stackName}`;
  if (outcome === "deleted") return `✓ Stack ${stackName} is deleted`;
  return `Deletion of stack ${stackName} initiated; follow it with: zae-limiter status --name ${stackName}`;
}

/** Only the stack knew what its bucket was called; CloudFormation has made up the end of it. */
function archiveLine(stackName: string): string {
  return (
    "  Not looked for: an archive that an earlier stack may have left, a bucket whose name begins " +
    `with ${stackName.toLowerCase()}-auditarchivebucket-`
  );
}

function keptLines(table: string | null, bucket: string | null): string[] {
  return [
    ...(table === null ? [] : [`  Kept: table ${table}`]),
    ...(bucket === null ? [] : [`  Kept: archive ${bucket}`]),
  ];
}
