/** Plans as people read them: what is there now, what will be. */

import type { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { PERIODS } from "@zae-limiter/limiter/domain/periods.ts";
import { localText } from "@zae-limiter/limiter/domain/zone.ts";
import {
  flagsData,
  type LevelConfig,
  levelName,
  type Target,
  targetName,
} from "@zae-limiter/limiter/manifest/manifest.ts";
import type { ChangeAction, LimitChange } from "@zae-limiter/limiter/manifest/plan.ts";
import type { Shape } from "../../frame/command.ts";
import { limitText } from "../../terminal/limit-text.ts";
import type { Palette } from "../../terminal/palette.ts";

/** The form of a change in JSON; a level is `{ on_unavailable?, limits: [limit] }`. */
export const CHANGE_SHAPE = {
  action: "text",
  level: "text",
  target: "text | null",
  before: "object | null",
  after: "object | null",
  "reason?": "text",
} as const satisfies Shape;

const SYMBOLS: Readonly<Record<ChangeAction, string>> = { create: "+", update: "~", delete: "-" };
const REASONS: Readonly<Record<NonNullable<LimitChange["reason"]>, string>> = {
  unreadable: "the stored limits are invalid",
  unregistered: "missing in the registries; writing it again adds it",
  full: "as declared, written again",
  kind: "refused: a limit changes its kind; say --replace-kind or replace_kind: true",
};

/** Returns `+ create resource gpt-4` and the changes within; the word can be left out. */
export function changeLines(change: LimitChange, palette: Palette, withAction = true): string {
  const { action, target, before, after, reason } = change;
  const word = withAction ? `${action} ` : "";
  const colour = colourOf(action, palette);
  const why = reason === undefined ? "" : ` (${REASONS[reason]})`;
  const heading = `  ${colour(`${SYMBOLS[action]} ${word}${targetText(target)}`)}${why}`;
  return [heading, ...differences(before, after, palette)].join("\n");
}

export function targetText(target: Target): string {
  return target.level === "system" ? "(system)" : `${levelName(target)} ${targetName(target)}`;
}

function differences(
  before: LevelConfig | undefined,
  after: LevelConfig | undefined,
  palette: Palette,
): string[] {
  const from = new Map(linesOf(before));
  const to = new Map(linesOf(after));
  return [...new Set([...from.keys(), ...to.keys()])].sort().map((name) => {
    const [was, is] = [from.get(name), to.get(name)];
    if (was === is) return `      ${palette.faint(`  ${was}`)}`;
    if (was === undefined) return `      ${palette.good(`+ ${is}`)}`;
    if (is === undefined) return `      ${palette.bad(`- ${was}`)}`;
    return `      ${palette.warning(`~ ${was} -> ${is.slice(name.length + 2)}`)}`;
  });
}

/** Returns a line for each quota whose running period ends at another time after the change. */
export function movedResets(changes: readonly LimitChange[], nowMs: number): string[] {
  return changes.flatMap(({ target, before, after }) =>
    (after?.limits ?? []).flatMap(({ name, rule }) => {
      const was = before?.limits.find((limit) => limit.name === name)?.rule;
      if (rule?.kind !== "quota" || was?.kind !== "quota") return [];
      const endMs = PERIODS.at(was, nowMs).endMs;
      const movedMs = PERIODS.movedEnd(rule, nowMs, endMs);
      const [from, to] = [localText(was.timeZone, endMs), localText(rule.timeZone, movedMs)];
      const place = targetText(target);
      return from === to
        ? []
        : [`${name} of ${place}: the next reset moves from ${from} to ${to}.`];
    }),
  );
}

/** Returns each limit and setting under its name. */
function linesOf(config: LevelConfig | undefined): [string, string][] {
  if (config === undefined) return [];
  const { limits, unsupported = [] } = config;
  return [
    ...Object.entries(flagsData(config)).map(([name, value]): [string, string] => [
      name,
      `${name}: ${value}`,
    ]),
    ...limits.map((limit: Limit): [string, string] => [limit.name, limitText(limit)]),
    ...unsupported.map(({ name, kind }): [string, string] => [name, `${name}: ${kind}`]),
  ];
}

function colourOf(action: ChangeAction, palette: Palette): (text: string) => string {
  if (action === "create") return palette.good;
  return action === "delete" ? palette.bad : palette.warning;
}
