/** The options of `deploy`, and the stack that they describe. Options not given stay open. */

import {
  type OptionName,
  STACK_OPTION_ENTRIES,
  type StackOption,
} from "@zae-limiter/aws/options/stack-option-table.ts";
import type { StackOptions } from "@zae-limiter/aws/options/stack-options.ts";
import { checkRelease } from "@zae-limiter/limiter/records/version-record.ts";
import { CommandFailure, type OptionSpec, UsageError } from "../../frame/command.ts";
import { wholeNumber } from "../../terminal/numbers.ts";

/** Options of the command line; those of the stack have the names of their flags. */
export interface DeployOptions {
  readonly maxShards?: string;
  readonly pythonLambdaVersion?: string;
  readonly tag: readonly string[];
  readonly [flag: string]: unknown;
}

/** Returns `--usage-retention-days` for `usageRetentionDays`. */
function flagName(option: string): string {
  return option.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** Returns the words after `--` and `--no-` of an option that is on or off: `enable-x` and `x`. */
function switchNames(name: OptionName, { word }: StackOption): { on: string; off: string } {
  const on = word ?? flagName(name);
  return { on, off: on.replace(/^enable-/, "") };
}

function specsOf([name, option]: readonly [OptionName, StackOption]): OptionSpec[] {
  const { type, help, word, range, choices, default: value } = option;
  if (type === "tags") return [];
  if (type === "boolean") {
    const { on, off } = switchNames(name, option);
    return [
      { flags: `--${on}`, text: `${help}${value === true ? " (default)" : ""}` },
      { flags: `--no-${off}`, text: `none${value === false ? " (default)" : ""}` },
    ];
  }
  return [
    {
      flags: `--${flagName(name)} <${word}>`,
      text: `${help}${value === undefined ? "" : ` (default ${value})`}`,
      ...(range === undefined ? {} : { parse: wholeNumber(...range) }),
      ...(choices === undefined ? {} : { choices: choices.map(String) }),
    },
  ];
}

export const DEPLOY_OPTIONS: readonly OptionSpec[] = [
  ...STACK_OPTION_ENTRIES.flatMap(specsOf),
  {
    flags: "--max-shards <count>",
    text: "the most shards of a hot bucket; 32 on a table shared with Python (default 64)",
    choices: ["1", "2", "4", "8", "16", "32", "64"],
  },
  {
    flags: "--python-lambda-version <release>",
    text:
      "claims a Lambda of the Python library, such as 0.17.0, so that its clients store what is " +
      "new; a newer client may then replace our Lambda. Pass it with every deploy",
  },
  { flags: "-t, --tag <key=value>", text: "tag of the stack", repeat: true },
];

/** Returns the options of the stack that were given. */
export function stackOptionsOf(options: DeployOptions): StackOptions {
  if (options["iam"] === false && options["createIamRoles"] === true) {
    throw new CommandFailure(
      "--no-iam and --create-iam-roles exclude each other: roles are part of IAM. Leave one out",
    );
  }
  const tags = tagsOf(options.tag);
  const given = STACK_OPTION_ENTRIES.map((entry) => [entry[0], givenOf(options, entry)] as const);
  return {
    ...Object.fromEntries(given.filter(([, value]) => value !== undefined)),
    ...(options.tag.length === 0 ? {} : { tags }),
  };
}

function givenOf(
  options: DeployOptions,
  [name, option]: readonly [OptionName, StackOption],
): unknown {
  if (option.type === "tags") return undefined;
  if (option.type !== "boolean") {
    const value = options[name];
    return value === undefined || option.type === "text" ? value : Number(value);
  }
  const { on, off } = switchNames(name, option);
  return on === off ? options[attributeOf(on)] : flagOf(options, on, off);
}

/** Returns the attribute of a flag as the parser names it: `createIamRoles`. */
function attributeOf(flag: string): string {
  return flag.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/**
 * Returns a setting, or none without both flags, although the parser returns true for the second.
 */
function flagOf(options: DeployOptions, on: string, off: string): boolean | undefined {
  const isEnabled = options[attributeOf(on)] === true;
  const isDisabled = options[attributeOf(off)] === false;
  if (isEnabled && isDisabled) throw new UsageError(`--${on} and --no-${off} exclude each other`);
  if (isEnabled) return true;
  return isDisabled ? false : undefined;
}

function tagsOf(texts: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    texts.map((text) => {
      const at = text.indexOf("=");
      if (at > 0) return [text.slice(0, at), text.slice(at + 1)];
      throw new CommandFailure(
        `--tag ${JSON.stringify(text)}: expected key=value, as in team=search`,
      );
    }),
  );
}

/** Returns the release of the Python library's Lambda that the table is to claim. */
export function claimedLambda({ pythonLambdaVersion: release }: DeployOptions): {
  readonly pythonLambdaVersion?: string;
} {
  if (release === undefined) return {};
  return { pythonLambdaVersion: checkRelease("--python-lambda-version", release) };
}
