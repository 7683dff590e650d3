/** Draws what is left of limits as bars. */

import { defined } from "@zae-limiter/limiter/base/defined.ts";
import { type LimitStatus, resetZone } from "@zae-limiter/limiter/domain/limit-status.ts";
import { TOTAL } from "@zae-limiter/limiter/domain/names.ts";
import { localIso } from "@zae-limiter/limiter/domain/zone.ts";
import type { Shape } from "../frame/command.ts";
import { rateText } from "./limit-text.ts";
import { duration, shownAmount } from "./numbers.ts";
import type { Palette } from "./palette.ts";

const BAR_MAX = 80;
/** A bar with fewer cells than this is left out in favour of the text. */
const BAR_GOOD = 10;
const BAR_MIN = 3;
/** Between the parts of a line. */
const GAP = "  ";
/** Length of the longest time that is shown, with the words before it, of rates and of others. */
const FULL_IN_LENGTH = "full in 59 min 59 s".length;
const RESETS_IN_LENGTH = "resets in 59 min 59 s".length;
const DEBT = "debt";
const LOW = 0.2;

export const STATUS_SHAPE: Shape = {
  entity_id: "text",
  resource: "text",
  limit_name: "text",
  capacity: "number",
  refill_amount: "number",
  refill_period_seconds: "number",
  available: "number",
  full_in_seconds: "number",
  kind: "text",
  "estimated?": "boolean",
  "period_start_ms?": "number",
  "resets_at_ms?": "number",
  "resets_at?": "text",
  "used?": "number",
};

export function statusJson(status: LimitStatus) {
  const { entityId, resource, limitName, limit, available, fullAfterSeconds } = status;
  const { estimated, periodStartMs, resetsAtMs, used } = status;
  const resetsAt = resetsAtMs === undefined ? undefined : localIso(resetZone(status), resetsAtMs);
  return {
    entity_id: entityId,
    resource,
    limit_name: limitName,
    capacity: limit.capacity,
    refill_amount: limit.refillAmount,
    refill_period_seconds: limit.refillPeriodSeconds,
    available,
    full_in_seconds: fullAfterSeconds,
    kind: status.kind,
    ...defined({
      estimated,
      period_start_ms: periodStartMs,
      resets_at_ms: resetsAtMs,
      resets_at: resetsAt,
      used,
    }),
  };
}

/** Returns the name of a limit among those of a call: a total is `@all/rpm`, as in headers. */
export function shownName({ resource, limitName }: LimitStatus): string {
  return resource === TOTAL ? `${TOTAL}/${limitName}` : limitName;
}

/** How the lines of a picture are laid out. It depends on limits only, so that nothing moves. */
interface Layout {
  /** Names are on lines of their own, because the numbers do not fit next to them. */
  readonly stacks: boolean;
  readonly names: number;
  readonly bar: number;
  readonly amounts: number;
  readonly showsRate: boolean;
  /** The columns that are left for the words behind the amounts. */
  readonly words: number;
}

/**
 * Draws a block for each entity: its own limits first, then those of the parents it cascades to.
 */
export function bars(
  statuses: readonly LimitStatus[],
  look: {
    readonly palette: Palette;
    readonly columns: number;
    /** Returns the text above the limits of an entity, instead of its name. */
    readonly heading?: (entityId: string) => string;
  },
): string {
  const entities = [...new Set(statuses.map(({ entityId }) => entityId))];
  const layout = layoutOf(statuses, look.columns);
  return entities
    .map((entityId, at) => {
      const lines = statuses
        .filter((status) => status.entityId === entityId)
        .map((status) => line(status, layout, look.palette));
      const title = look.palette.title(entityId);
      const heading = look.heading?.(entityId) ?? (at === 0 ? title : `${title}, ancestor`);
      return [heading, ...lines].join("\n");
    })
    .join("\n");
}

/**
 * Leaves out the rate, then the time, then the bar, where they have no room. Numbers stay: where
 * they do not fit next to the names, they come below them.
 */
function layoutOf(statuses: readonly LimitStatus[], columns: number): Layout {
  const longest = (text: (status: LimitStatus) => string) =>
    Math.max(0, ...statuses.map((status) => text(status).length));
  const longestName = longest(shownName);
  // A balance has at most as many digits as the capacity, unless a debt is larger; of money, cents
  // and parts of cents come and go.
  const amounts = Math.max(
    longest(amountText),
    longest(({ limit }) => amountText({ limit, available: -limit.capacity })),
    longest(({ limit }) => amountText({ limit, available: 1 - limit.capacity })),
  );
  const stacks = longestName + amounts + 2 * GAP.length > columns;
  const names = stacks ? 0 : longestName;
  const rates = longest(({ limit }) => `+${rateText(limit)}, `);
  const room = columns - names - amounts - 3 * GAP.length;
  const hasResets = statuses.some(({ limit }) => limit.rule !== undefined);
  const withTime = room - GAP.length - (hasResets ? RESETS_IN_LENGTH : FULL_IN_LENGTH);
  const showsRate = withTime - rates >= BAR_GOOD;
  const narrow = withTime >= BAR_GOOD ? withTime : room >= BAR_MIN ? room : 0;
  const bar = showsRate ? Math.min(BAR_MAX, withTime - rates) : narrow;
  const words = bar === 0 ? room : room - bar - GAP.length;
  return { stacks, names, amounts, bar, showsRate, words };
}

function line(status: LimitStatus, layout: Layout, palette: Palette): string {
  const { available } = status;
  const name = shownName(status);
  const tail = tailOf(status, layout, palette);
  // The bar of a debt is empty: where the word has no room behind the amount, the bar shows it.
  const word = available < 0 && tail === "" ? DEBT : "";
  const bar = layout.bar === 0 ? [] : [barOf(status, layout.bar, palette, word)];
  const parts = [
    "",
    layout.stacks ? "" : name.padEnd(layout.names),
    ...bar,
    amountText(status).padStart(layout.amounts),
    tail,
  ];
  const drawn = parts.join(GAP).trimEnd();
  return layout.stacks ? `${GAP}${name}\n${drawn}` : drawn;
}

function barOf(
  { available, limit }: LimitStatus,
  width: number,
  palette: Palette,
  word: string,
): string {
  const share = Math.max(0, Math.min(1, available / limit.capacity));
  if (share === 0) return palette.bad((word.length <= width ? word : "").padEnd(width, "░"));
  // A balance above zero is never shown as nothing, and one below full never as full.
  const filled = Math.max(1, Math.min(Math.ceil(share * width), share < 1 ? width - 1 : width));
  const paint = share <= LOW ? palette.warning : palette.good;
  return paint("█".repeat(filled)) + palette.faint("░".repeat(width - filled));
}

function amountText({ available, limit }: Pick<LimitStatus, "available" | "limit">): string {
  return `${shownAmount(limit.name, available)} of ${shownAmount(limit.name, limit.capacity)}`;
}

/** Returns the time to refill; slots have none, and it is said how many calls hold them. */
function timeOf({ available, limit, fullAfterSeconds }: LimitStatus): readonly string[] {
  if (fullAfterSeconds === 0) return [];
  if (limit.kind === "concurrency") {
    return [`${shownAmount(limit.name, limit.capacity - available)} in flight`];
  }
  return [`${limit.rule === undefined ? "full" : "resets"} in ${duration(fullAfterSeconds)}`];
}

/**
 * Returns the rate of the refill, whether there is a debt, and the time to refill. Where they do
 * not fit, the rate is left out, then the time: half a number would be another number.
 */
function tailOf(status: LimitStatus, { showsRate, words }: Layout, palette: Palette): string {
  const { available, limit } = status;
  const rate = showsRate ? [`${limit.kind === "rate" ? "+" : ""}${rateText(limit)}`] : [];
  const debt = available < 0 && limit.kind !== "concurrency" ? [DEBT] : [];
  const time = timeOf(status);
  const tails = [[...rate, ...debt, ...time], [...debt, ...time], debt];
  const fits = tails.find((parts) => parts.join(", ").length <= words) ?? [];
  return fits.map((part) => (part === DEBT ? palette.bad(part) : part)).join(", ");
}
