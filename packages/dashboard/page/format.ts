/** Numbers and times as people read them. */

import { formatMoney, isMoney, MICRO_PER_DOLLAR } from "@zae-limiter/limiter/core/micro-dollars.ts";

const WHOLE = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const COMPACT = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });

export function whole(value: number): string {
  return WHOLE.format(value).replace("-", "−");
}

export function compact(value: number): string {
  return Math.abs(value) < 10_000 ? whole(value) : COMPACT.format(value).replace("-", "−");
}

const MICRO_PER_CENT = MICRO_PER_DOLLAR / 100;

/** Returns an amount of a limit with all its digits: `15,000`, or `$12.50` of money. */
export function wholeAmount(limitName: string, value: number): string {
  return isMoney(limitName) ? formatMoney(limitName, value).replace("-", "−") : whole(value);
}

/** Returns an amount of a limit in little room: parts of cents are left out above a dollar. */
export function compactAmount(limitName: string, value: number): string {
  if (!isMoney(limitName)) return compact(value);
  const isLarge = Math.abs(value) >= MICRO_PER_DOLLAR;
  const shown = isLarge ? Math.floor(value / MICRO_PER_CENT) * MICRO_PER_CENT : value;
  return wholeAmount(limitName, shown);
}

/** Returns `2026-01-15T09:00:00Z` in the time zone of the reader. */
export function time(iso: string): string {
  const date = new Date(iso);
  const options = { dateStyle: "medium", timeStyle: "short" } as const;
  return Number.isNaN(date.getTime()) ? iso : date.toLocaleString("en-GB", options);
}

export function clock(ms: number): string {
  return new Date(ms).toLocaleTimeString("en-GB");
}

export function seconds(value: number | null): string {
  if (value === null) return "never";
  if (value < 60) return `${value < 10 ? value.toFixed(1) : Math.ceil(value)} s`;
  if (value < 3600) return `${Math.ceil(value / 60)} min`;
  return value < 172_800 ? `${Math.ceil(value / 3600)} h` : `${Math.floor(value / 86_400)} d`;
}

export const SOURCE_NAMES: Readonly<Record<string, string>> = {
  entity: "entity",
  entity_default: "entity default",
  parent: "children of the parent",
  parent_default: "children of the parent, default",
  resource: "resource",
  system: "system",
};

const BIDI = /\p{Bidi_Control}/gu;

/** Returns a text in which no character changes the direction. */
export function withoutBidi(text: string): string {
  return text.replace(BIDI, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
