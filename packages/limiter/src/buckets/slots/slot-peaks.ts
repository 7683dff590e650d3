/**
 * The most slots that were held at once since usage was counted last. Slots are held and not used
 * up, so the peak is in the places where other limits have their consumption, and what is counted.
 */

import { hasSlots, type Rate } from "../../core/bucket.ts";
import type { Build } from "../embedded/build.ts";
import { CONSUMED, COUNTED, consumedAt, type Numbers, STRIDE } from "../embedded/limit-numbers.ts";

/** Raises the peak of a limit to the slots that are held now. */
export function seePeakAt(numbers: Numbers, at: number, rate: Rate): void {
  seePeakOf(numbers, at, rate.capacityMilli - (numbers[at * STRIDE] as number));
}

/** Raises the peak of a limit to the milli-slots that were held at a time. */
export function seePeakOf(numbers: Numbers, at: number, heldMilli: number): void {
  const place = at * STRIDE;
  const peak = Math.max(Number(numbers[place + CONSUMED]), heldMilli);
  numbers[place + CONSUMED] = peak;
  numbers[place + COUNTED] = peak;
}

/** Begins new peaks, with what is held now. */
export function beginPeaks({ rates }: Build, numbers: Numbers): void {
  rates.forEach((rate, at) => {
    if (!hasSlots(rate)) return;
    numbers[at * STRIDE + CONSUMED] = 0;
    seePeakAt(numbers, at, rate);
  });
}

/** Returns the total that a limit has consumed, in milli-tokens; slots consume nothing. */
export function totalAt(numbers: Readonly<Numbers>, at: number, rate: Rate): number | bigint {
  return hasSlots(rate) ? 0 : consumedAt(numbers, at);
}

/** Returns the peaks by the names of the limits, where some of them have slots. */
export function peaksOf(
  { names, rates }: Build,
  numbers: Readonly<Numbers>,
): { readonly peaks?: ReadonlyMap<string, number> } {
  if (!rates.some(hasSlots)) return {};
  const peaks = rates.flatMap((rate, at) => {
    const peak = Math.ceil(Number(numbers[at * STRIDE + CONSUMED]) / 1000);
    return hasSlots(rate) ? [[names[at] as string, peak] as const] : [];
  });
  return { peaks: new Map(peaks) };
}
