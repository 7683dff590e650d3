/** Numbers on command lines: read strictly, shown with separators. */

import { formatMoney, isMoney } from "@zae-limiter/limiter/core/micro-dollars.ts";
import { UsageError } from "../frame/command.ts";

export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^-?\d+$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new UsageError(`expected a whole number from ${min} to ${max}`);
  };
}

export function decimalNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new UsageError(`expected a number from ${min} to ${max}`);
  };
}

const THOUSANDS = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** Returns `15,000`, on every machine, whatever its language. */
export function withThousands(value: number): string {
  return THOUSANDS.format(value);
}

/** Returns an amount of a limit: `15,000`, or `$12.50` where the limit is money. */
export function shownAmount(limitName: string, amount: number): string {
  return isMoney(limitName) ? formatMoney(limitName, amount) : withThousands(amount);
}

/** Returns `7 s`, `2 min 5 s`, `3 h 10 min`: rounded up, because it is a time to wait. */
export function duration(seconds: number): string {
  if (!Number.isFinite(seconds)) return "never";
  if (seconds < 10) return `${(Math.ceil(seconds * 10) / 10).toFixed(1)} s`;
  const whole = Math.ceil(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return parts(whole, 60, "min", 1, "s");
  if (whole < 86_400) return parts(whole, 3600, "h", 60, "min");
  return parts(whole, 86_400, "d", 3600, "h");
}

function parts(
  seconds: number,
  large: number,
  largeUnit: string,
  small: number,
  smallUnit: string,
): string {
  const count = Math.floor(seconds / large);
  const rest = Math.floor((seconds % large) / small);
  return rest === 0 ? `${count} ${largeUnit}` : `${count} ${largeUnit} ${rest} ${smallUnit}`;
}
