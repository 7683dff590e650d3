/** Which stack a command is about, and how to reach it. */

import { defined } from "@zae-limiter/limiter/base/defined.ts";
import type { DynamoOptions } from "@zae-limiter/limiter/repository/options.ts";
import { checkEndpoint } from "@zae-limiter/limiter/repository/stores/dynamodb.ts";
import type { OptionSpec } from "../../frame/command.ts";
import { STACK_OPTIONS, stackNameOf } from "../../store/store-options.ts";
import type { Terminal } from "../../terminal/terminal.ts";

export interface StackPlaceOptions {
  readonly name?: string;
  readonly region?: string;
  readonly endpointUrl?: string;
}

export interface StackPlace {
  readonly stackName: string;
  readonly connection: DynamoOptions;
}

/** For commands that should not guess: the name must be given. */
export const NAMED_STACK_OPTIONS: readonly OptionSpec[] = STACK_OPTIONS.map((option) =>
  option.flags.startsWith("-n,")
    ? { ...option, text: "name of the stack", required: true as const }
    : option,
);

export function stackPlace(options: StackPlaceOptions, terminal: Terminal): StackPlace {
  const stackName = stackNameOf(options.name, terminal.env);
  return { stackName, connection: connectionOf(options, terminal) };
}

export function connectionOf(options: StackPlaceOptions, terminal: Terminal): DynamoOptions {
  const { region, endpointUrl } = options;
  const { clock, timer } = terminal;
  const endpoint = endpointUrl === undefined ? undefined : checkEndpoint(endpointUrl);
  return { timer, ...defined({ clock, region, endpoint }) };
}
