/** `set-limits`, `get-limits` and `delete-limits` of a level, made from one definition of it. */

import { defined } from "@zae-limiter/limiter/base/defined.ts";
import type { JsonValue } from "@zae-limiter/limiter/domain/json.ts";
import type { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import type { LimitRecords } from "@zae-limiter/limiter/records/config/limits.ts";
import type { StoredLevel } from "@zae-limiter/limiter/records/config/switches.ts";
import {
  type ArgumentSpec,
  type Leaf,
  leaf,
  type OptionSpec,
  type Result,
  type Shape,
} from "../../frame/command.ts";
import { lossText } from "../../store/lost-limits.ts";
import { PRINCIPAL_OPTION, type PrincipalOptions, principalOf } from "../../store/principal.ts";
import { spentNote } from "../../store/spent-note.ts";
import { levelJson, levelText } from "../../terminal/level-text.ts";
import {
  counted,
  LIMIT_SHAPE,
  LIMITS_OPTION,
  limitLines,
  nameWarnings,
  parseLimits,
  REPLACE_KIND_OPTION,
  SOFT_OPTION,
  warningText,
} from "../../terminal/limit-text.ts";

type Fields = Readonly<Record<string, JsonValue>>;
type Shapes = Readonly<Record<string, Shape>>;

/** The kind of level that a group of commands works on. */
export interface LimitLevel<Options extends object> {
  /** The owner of the limits in summaries, such as `an entity`. */
  readonly title: string;
  /** Whether earlier versions call the commands `set-defaults` and so on. */
  readonly wasDefaults: boolean;
  /** The end of the names of the commands; `limits` when absent. */
  readonly noun?: string;
  readonly arguments: readonly ArgumentSpec[];
  /** Options of each of the commands. */
  readonly options: readonly OptionSpec[];
  readonly setOptions?: readonly OptionSpec[];
  readonly setExamples: readonly string[];
  /** More sentences for the help of `set-limits`. */
  readonly setDetails?: string;
  /** More sentences for the help of `get-limits`. */
  readonly details?: string;
  /** The end of the summary of `delete-limits`. */
  readonly alsoDeletes?: string;
  readonly shape: { readonly owner: Shapes; readonly stored: Shapes; readonly settings?: Shapes };
  /** Returns the level that a command line names. */
  at(id: string, options: Options): NamedLevel;
}

/** One level, such as that of the entity `key-1`. */
export interface NamedLevel {
  readonly owner: { readonly json: Fields; readonly name: string };
  set(records: LimitRecords, limits: readonly Limit[], how: HowToSet): Promise<unknown>;
  /** Returns a line for each entity that lacks limits once these are set. */
  lost(records: LimitRecords, limits: readonly Limit[]): Promise<readonly string[]>;
  get(records: LimitRecords): Promise<StoredLevel>;
  /** Deletes the limits; returns whether any were stored. */
  remove(records: LimitRecords, by: PrincipalOptions): Promise<boolean>;
  /** Returns the settings that are shown with the limits. */
  settings?(records: LimitRecords): Promise<{ readonly json: Fields; readonly line: string }>;
}

/** The principal of a change, and whether a limit of another kind may replace a stored one. */
type HowToSet = PrincipalOptions & { readonly replaceKind?: boolean };

const NO_SETTINGS = { json: {}, line: "" } as const;

export function limitCommands<Options extends object>(level: LimitLevel<Options>): Leaf[] {
  return [setCommand(level), getCommand(level), deleteCommand(level)];
}

interface SetOptions extends PrincipalOptions {
  readonly limit: readonly string[];
  readonly soft: readonly string[];
  readonly replaceKind?: boolean;
}

function setCommand<Options extends object>(level: LimitLevel<Options>): Leaf {
  return leaf<Options & SetOptions>({
    ...named("set", level),
    summary: `replaces the limits of ${level.title}`,
    ...defined({ details: level.setDetails }),
    options: [
      LIMITS_OPTION,
      SOFT_OPTION,
      REPLACE_KIND_OPTION,
      ...level.options,
      ...(level.setOptions ?? []),
      PRINCIPAL_OPTION,
    ],
    store: "write",
    examples: level.setExamples,
    json: {
      ...level.shape.owner,
      limits: [LIMIT_SHAPE],
      ...level.shape.settings,
      warnings: ["text"],
    },
    run: async ({ args: [id = ""], options, open, json, note }) => {
      const at = level.at(id, options);
      const limits = parseLimits(options.limit, options.soft);
      const repository = await open();
      const { limits: records } = repository;
      await at.set(records, limits, {
        ...principalOf(options),
        ...defined({ replaceKind: options.replaceKind }),
      });
      const names = nameWarnings(limits);
      const lost = await at.lost(records, limits);
      // JSON has these lines as a field.
      if (!json) for (const line of [...names.map(warningText), ...lost.map(lossText)]) note(line);
      const spent = spentNote(repository, limits);
      if (!json && spent !== undefined) note(spent);
      const settings = (await at.settings?.(records)) ?? NO_SETTINGS;
      const { owner } = at;
      return {
        json: () => ({
          ...owner.json,
          limits: limits.map((limit) => limit.toJSON()),
          warnings: [...names, ...lost],
          ...settings.json,
        }),
        text: () =>
          lines(
            `Set ${counted(limits.length, "limit")} of ${owner.name}:`,
            limitLines(limits),
            settings.line,
          ),
      };
    },
  });
}

function getCommand<Options extends object>(level: LimitLevel<Options>): Leaf {
  const { owner, stored: shape } = level.shape;
  return leaf<Options>({
    ...named("get", level),
    summary: `shows the limits of ${level.title}`,
    ...defined({ details: level.details }),
    options: level.options,
    store: "read",
    json: { ...owner, ...shape },
    run: async ({ args: [id = ""], options, open }) => {
      const at = level.at(id, options);
      const { limits: records } = await open();
      const stored = await at.get(records);
      const settings = (await at.settings?.(records)) ?? NO_SETTINGS;
      const parts = Object.entries(levelJson(stored)).filter(([name]) => name in shape);
      return {
        json: () => ({ ...at.owner.json, ...Object.fromEntries(parts), ...settings.json }),
        text: () => lines(levelText(at.owner.name, stored), settings.line),
      };
    },
  });
}

/** Returns the command that asks, then deletes. A no is not a failure: nothing was lost. */
function deleteCommand<Options extends object>(level: LimitLevel<Options>): Leaf {
  return leaf<Options & PrincipalOptions>({
    ...named("delete", level),
    summary: `removes the limits of ${level.title}${level.alsoDeletes ?? ""}`,
    options: [...level.options, PRINCIPAL_OPTION],
    store: "change",
    confirms: true,
    json: { ...level.shape.owner, deleted: "boolean" },
    run: async ({ args: [id = ""], options, open, confirm }) => {
      const at = level.at(id, options);
      const { json, name } = at.owner;
      const agreed = await confirm(`Delete the limits of ${name}?`);
      const deleted = agreed && (await at.remove((await open()).limits, principalOf(options)));
      return {
        json: () => ({ ...json, deleted }),
        text: () => {
          if (!agreed) return "Cancelled: nothing was deleted";
          return deleted ? `Deleted the limits of ${name}` : `No limits were stored for ${name}`;
        },
      };
    },
  });
}

/** Returns a command that lists resources. */
export function resourcesCommand(command: {
  readonly name: string;
  readonly summary: string;
  readonly read: (records: LimitRecords) => Promise<readonly string[]>;
  /** The text instead of an empty list. */
  readonly none: string;
}): Leaf {
  const { name, summary, read, none } = command;
  return leaf({
    name,
    summary,
    store: "read",
    json: { resources: ["text"] },
    run: async ({ open }): Promise<Result> => {
      const resources = await read((await open()).limits);
      return {
        json: () => ({ resources }),
        text: () => (resources.length === 0 ? none : resources.join("\n")),
      };
    },
  });
}

function named(word: "set" | "get" | "delete", level: LimitLevel<never>) {
  return {
    name: `${word}-${level.noun ?? "limits"}`,
    ...(level.wasDefaults ? { alias: `${word}-defaults` } : {}),
    ...(level.arguments.length === 0 ? {} : { arguments: level.arguments }),
  };
}

function lines(...texts: readonly string[]): string {
  return texts.filter((text) => text !== "").join("\n");
}
