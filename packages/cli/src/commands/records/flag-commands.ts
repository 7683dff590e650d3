/** Commands of entities and resources that set a flag: the switches and the cascade policy. */

import { defined } from "@zae-limiter/limiter/base/defined.ts";
import type { FlagTarget } from "@zae-limiter/limiter/records/config/config-level.ts";
import type { LimitRecords } from "@zae-limiter/limiter/records/config/limits.ts";
import type { SwitchState } from "@zae-limiter/limiter/records/config/switches.ts";
import {
  type ArgumentSpec,
  type Leaf,
  leaf,
  type OptionSpec,
  type Shape,
} from "../../frame/command.ts";
import { PRINCIPAL_OPTION, type PrincipalOptions, principalOf } from "../../store/principal.ts";
import { stateText } from "../../terminal/level-text.ts";
import { counted } from "../../terminal/limit-text.ts";

/** The kind of level that a group of commands sets flags of. */
export interface FlagLevel {
  /** The word of the group, for examples. */
  readonly group: "entity" | "resource";
  readonly argument: ArgumentSpec;
  /** The level in examples: its id, then its options. */
  readonly example: readonly [id: string, ...options: string[]];
  readonly options: readonly OptionSpec[];
  readonly shape: Readonly<Record<string, Shape>>;
  readonly target: (id: string, options: { readonly resource?: string }) => FlagTarget;
}

type Value = SwitchState | boolean | null;

/** A command that sets a flag, or clears it with the value `null`. */
interface FlagCommand {
  readonly name: string;
  /** The name of the Python library. */
  readonly alias?: string;
  readonly summary: string;
  readonly field: "state" | "cascade";
  /** Returns the value to set, from the argument of `set-cascade`. */
  readonly value: (given: string | undefined) => Value;
  readonly write: (
    limits: LimitRecords,
    target: FlagTarget,
    value: Value,
    by: PrincipalOptions,
  ) => Promise<{ readonly stampedBuckets: number }>;
}

const POLICY: ArgumentSpec = {
  name: "<policy>",
  text: "whether acquires consume from the parent too",
  choices: ["on", "off"],
};

const SHAPES = { state: "text | null", cascade: "boolean | null" } as const;

const SET_CASCADE: FlagCommand = {
  name: "set-cascade",
  summary: "sets whether acquires consume from the parent too",
  field: "cascade",
  value: (policy) => policy === "on",
  write: (limits, target, value, by) => limits.setCascade(target, value as boolean | null, by),
};

const COMMANDS: readonly FlagCommand[] = [
  switching("disable", "disabled", "switches off: every acquire is refused, and balances stay"),
  {
    ...switching(
      "enable",
      "enabled",
      "undoes disable; switches on where a wider level is off, too",
    ),
    write: switchOn,
  },
  switching(
    "bypass",
    "bypass",
    "grants everything and counts it: nothing is refused, and balances stay",
  ),
  {
    ...switching("clear", null, "removes the switch, so that the next wider level decides"),
    alias: "clear-disabled",
  },
  SET_CASCADE,
  {
    ...SET_CASCADE,
    name: "clear-cascade",
    summary: "removes the cascade policy, so that the next wider level decides",
    value: () => null,
  },
];

function switching(
  name: "disable" | "enable" | "bypass" | "clear",
  state: SwitchState | null,
  summary: string,
): FlagCommand {
  const write: FlagCommand["write"] = (limits, target, _, by) => limits[name](target, by);
  return { name, summary, field: "state", value: () => state, write };
}

/** Removes the switch, and stores one only where a wider level would decide otherwise. */
async function switchOn(
  limits: LimitRecords,
  target: FlagTarget,
  _: Value,
  by: PrincipalOptions,
): Promise<{ readonly stampedBuckets: number }> {
  const { own, state } = await limits.state(target);
  if (own === "enabled" || (own === undefined && state === "enabled")) return { stampedBuckets: 0 };
  const cleared = await limits.clear(target, by);
  return (await limits.state(target)).state === "enabled" ? cleared : limits.enable(target, by);
}

export function flagCommands(level: FlagLevel): Leaf[] {
  return COMMANDS.map((command) => flagCommand(level, command));
}

function flagCommand(level: FlagLevel, command: FlagCommand) {
  const { name, alias, summary, field, value: read, write } = command;
  const [id, ...flags] = level.example;
  const takesPolicy = name === SET_CASCADE.name;
  return leaf<PrincipalOptions & { readonly resource?: string }>({
    name,
    ...defined({ alias }),
    summary,
    arguments: takesPolicy ? [level.argument, POLICY] : [level.argument],
    options: [...level.options, PRINCIPAL_OPTION],
    store: name.startsWith("clear") ? "change" : "write",
    examples: [[level.group, name, id, ...(takesPolicy ? ["on"] : []), ...flags].join(" ")],
    json: { ...level.shape, [field]: SHAPES[field], stamped_buckets: "number" },
    run: async ({ args: [owner = "", given], options, open }) => {
      const target = level.target(owner, options);
      const value = read(given);
      const { limits } = await open();
      const { stampedBuckets } = await write(limits, target, value, principalOf(options));
      const { entityId, resource = null } = target;
      return {
        json: () => ({
          ...(entityId === undefined ? {} : { entity_id: entityId }),
          resource,
          [field]: value,
          stamped_buckets: stampedBuckets,
        }),
        text: () => {
          const said = flagText(ownerText(target), field, value);
          const stamped = counted(stampedBuckets, "live bucket");
          return stampedBuckets === 0 ? said : `${said}\nStamped ${stamped}`;
        },
      };
    },
  });
}

function flagText(owner: string, field: FlagCommand["field"], value: Value): string {
  if (value === null) {
    return `Removed the ${field === "state" ? "switch" : "cascade policy"} of ${owner}`;
  }
  if (typeof value === "string") return `${owner} is ${stateText(value)}`;
  return `${owner} ${value ? "cascades" : "does not cascade"}`;
}

/** Returns the owner of limits or flags as sentences name it. */
export function ownerText({ entityId, resource }: FlagTarget): string {
  if (entityId === undefined) return resource ?? "";
  return resource === undefined ? entityId : `${entityId} on ${resource}`;
}
