/** What is left of limits, as bars. */

import type { Limit } from "../domain/limit.ts";
import type { LimitStatus } from "../domain/limit-status.ts";
import type { Shape } from "./command.ts";
import { rateText } from "./limit-text.ts";
import { duration, withThousands } from "./numbers.ts";
import type { Palette } from "./palette.ts";

const BAR_MAX = 30;
const BAR_MIN = 8;
/** What stands beside a bar besides names and numbers. */
const BESIDE = 34;
const LOW = 0.2;

export const STATUS_SHAPE: Shape = {
  entity_id: "text",
  limit_name: "text",
  capacity: "number",
  refill_amount: "number",
  refill_period_seconds: "number",
  available: "number",
  full_in_seconds: "number",
};

export function statusJson({ entityId, limitName, limit, available }: LimitStatus) {
  return {
    entity_id: entityId,
    limit_name: limitName,
    capacity: limit.capacity,
    refill_amount: limit.refillAmount,
    refill_period_seconds: limit.refillPeriodSeconds,
    available,
    full_in_seconds: secondsToFull(limit, available),
  };
}

/** A block for each entity: its own limits first, then those of the parents it charges. */
export function bars(
  statuses: readonly LimitStatus[],
  look: { readonly palette: Palette; readonly columns: number },
): string {
  const entities = [...new Set(statuses.map(({ entityId }) => entityId))];
  const names = Math.max(...statuses.map(({ limitName }) => limitName.length));
  const amounts = Math.max(...statuses.map((status) => amountText(status).length));
  const room = look.columns - names - amounts - BESIDE;
  const width = Math.max(BAR_MIN, Math.min(BAR_MAX, room));
  return entities
    .map((entityId, at) => {
      const lines = statuses
        .filter((status) => status.entityId === entityId)
        .map((status) => {
          const name = status.limitName.padEnd(names);
          const amount = amountText(status).padStart(amounts);
          return `  ${name}  ${bar(status, width, look.palette)}  ${amount}  ${refillText(status)}`;
        });
      const title = look.palette.title(entityId);
      return [at === 0 ? title : `${title}, charged along`, ...lines].join("\n");
    })
    .join("\n");
}

function bar({ available, limit }: LimitStatus, width: number, palette: Palette): string {
  const share = Math.max(0, Math.min(1, available / limit.capacity));
  // Something left is never shown as nothing, and not quite full never as full.
  const filled = Math.min(Math.ceil(share * width), share < 1 ? width - 1 : width);
  const cells = "█".repeat(share === 0 ? 0 : Math.max(1, filled));
  const paint = share === 0 ? palette.bad : share <= LOW ? palette.warning : palette.good;
  return paint(cells) + palette.faint("░".repeat(width - cells.length));
}

function amountText({ available, limit }: LimitStatus): string {
  return `${withThousands(available)} of ${withThousands(limit.capacity)}`;
}

function refillText({ available, limit }: LimitStatus): string {
  const seconds = secondsToFull(limit, available);
  return `+${rateText(limit)}${seconds === 0 ? "" : `, full in ${duration(seconds)}`}`;
}

function secondsToFull(limit: Limit, available: number): number {
  const missing = Math.max(0, limit.capacity - available);
  return Math.ceil((missing * limit.refillPeriodSeconds * 1000) / limit.refillAmount) / 1000;
}
