/** `stack list`: the stacks of a region. */

import type { AwsConnection } from "@zae-limiter/aws/index.ts";
import { leaf } from "../../frame/command.ts";
import { stackAt, stackHint } from "../../frame/hint.ts";
import { STACK_OPTIONS } from "../../store/store-options.ts";
import { jsonOf } from "../../terminal/json.ts";
import { table } from "../../terminal/table.ts";
import { connectionOf, type StackPlaceOptions } from "./deploy-place.ts";

const STACK_SHAPE = {
  name: "text",
  stack_name: "text",
  status: "text",
  version: "text | null",
  schema_version: "text | null",
  lambda_version: "text | null",
  created: "text | null",
} as const;

export const list = leaf<StackPlaceOptions>({
  name: "list",
  summary: "lists the stacks of a region",
  options: STACK_OPTIONS.filter(({ flags }) => !flags.startsWith("-n,")),
  examples: ["stack list --region eu-west-1"],
  json: {
    region: "text",
    stacks: [STACK_SHAPE],
  },
  run: async ({ options, terminal }) => {
    const connection = connectionOf(options, terminal);
    const { limitersThere } = await import("@zae-limiter/aws/stack/discovery.ts");
    const { region, limiters } = await limitersThere(connection as AwsConnection);
    const stacks = limiters
      .filter(({ stackType }) => stackType === "limiter")
      .sort((left, right) => (left.stackName < right.stackName ? -1 : 1));
    const count = (test: "isFailed" | "isInProgress") => stacks.filter((info) => info[test]).length;
    return {
      json: () => ({
        region,
        stacks: stacks.map((info) =>
          jsonOf(STACK_SHAPE, {
            ...info,
            name: info.stackName,
            status: info.stackStatus,
            created: info.creationTime || null,
          }),
        ),
      }),
      text: async () => {
        if (stacks.length === 0) {
          const command = stackHint(["deploy"], stackAt("my-app", options));
          return `There are no stacks in ${region}. Deploy one with: ${command}`;
        }
        const rows = stacks.map((info) => [
          info.stackName,
          info.stackStatus,
          info.version ?? "-",
          dayOf(info.creationTime),
        ]);
        const titles = ["Name", "Status", "Version", "Created"];
        const totals = [
          `${stacks.length} in ${region}`,
          ...(count("isFailed") > 0 ? [`${count("isFailed")} failed`] : []),
          ...(count("isInProgress") > 0 ? [`${count("isInProgress")} in progress`] : []),
        ];
        return `${await table(titles, rows, terminal.palette.faint)}\n\n${totals.join(", ")}`;
      },
    };
  },
});

function dayOf(time: string): string {
  return /^\d{4}-\d{2}-\d{2}/.exec(time)?.[0] ?? "unknown";
}
