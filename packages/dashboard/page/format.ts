/** Numbers and times as people read them. */

const WHOLE = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const COMPACT = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });

export function whole(value: number): string {
  return WHOLE.format(value).replace("-", "−");
}

export function compact(value: number): string {
  return Math.abs(value) < 10_000 ? whole(value) : COMPACT.format(value).replace("-", "−");
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
  return value < 3600 ? `${Math.ceil(value / 60)} min` : `${Math.ceil(value / 3600)} h`;
}

export const SOURCE_NAMES: Readonly<Record<string, string>> = {
  entity: "entity",
  entity_default: "entity default",
  resource: "resource",
  system: "system",
};
