/** Shows a level of stored limits: limits, limits that only Python enforces, and flags. */

import type { JsonValue } from "@zae-limiter/limiter/domain/json.ts";
import type { StoredLevel, SwitchState } from "@zae-limiter/limiter/records/config/switches.ts";
import type { Shape } from "../frame/command.ts";
import { LIMIT_SHAPE, limitLines } from "./limit-text.ts";

/** The parts of a level in JSON; `null` where the level says nothing. */
export const LEVEL_SHAPE = {
  limits: [LIMIT_SHAPE],
  unsupported: [{ name: "text", kind: "text" }],
  state: "text | null",
  cascade: "boolean | null",
} as const satisfies Record<string, Shape>;

/** A level that says nothing. */
export const NOTHING_STORED: StoredLevel = {
  limits: [],
  unsupported: [],
  state: undefined,
  cascade: undefined,
};

const STATE_TEXTS: Readonly<Record<SwitchState, string>> = {
  enabled: "switched on",
  disabled: "switched off: every acquire is refused",
  bypass: "bypassed: everything is granted and counted",
};

/** Returns the meaning of a switch in words. */
export function stateText(state: SwitchState): string {
  return STATE_TEXTS[state];
}

export function levelJson({ limits, unsupported, state, cascade }: StoredLevel) {
  return {
    limits: limits.map((limit) => limit.toJSON()),
    unsupported: unsupported.map(({ name, kind }) => ({ name, kind })),
    state: state ?? null,
    cascade: cascade ?? null,
  } satisfies Record<string, JsonValue>;
}

export function levelText(name: string, level: StoredLevel): string {
  const { limits, unsupported, state, cascade } = level;
  const others = unsupported.map(
    ({ name: limit, kind }) => `  ${limit}: ${kind}, which only the Python library enforces`,
  );
  const lines = [...(limits.length === 0 ? [] : [limitLines(limits)]), ...others];
  return [
    lines.length === 0 ? `No limits are stored for ${name}` : `Limits of ${name}:`,
    ...lines,
    ...(state === undefined ? [] : [`It is ${stateText(state)}`]),
    ...(cascade === undefined ? [] : [`It ${cascade ? "cascades" : "does not cascade"}`]),
  ].join("\n");
}
