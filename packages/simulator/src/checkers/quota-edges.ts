/**
 * The edges of quotas in simulated runs: multiples of the length of a period, moved by what the
 * zone data of each process say. Independent of the calendar of the library.
 */

export interface QuotaEdges {
  /** The length of all periods. */
  readonly lengthMs: number;
  /** How much later the edges of a process are than those of UTC. */
  readonly shiftOf: (process: number) => number;
}

/** Clients with other data of zones may disagree about an edge by a day at most. */
const GUARD_MAX_MS = 86_400_000;

/** Returns the first edge of a process after an instant. */
export function edgeAfter(edges: QuotaEdges, process: number, ms: number): number {
  const { lengthMs } = edges;
  const shiftMs = edges.shiftOf(process);
  return (Math.floor((ms - shiftMs) / lengthMs) + 1) * lengthMs + shiftMs;
}

/** Returns how often a quota has reset by a time, since a stored end that was due. */
export function resetsUntil(
  edges: QuotaEdges,
  process: number,
  { nowMs, storedEndMs }: { readonly nowMs: number; readonly storedEndMs: number },
): number {
  let resets = 1;
  let endMs = edgeAfter(edges, process, storedEndMs + guardMs(edges));
  for (; endMs <= nowMs; endMs += edges.lengthMs) resets += 1;
  return resets;
}

/** Returns the end of the period that a process opens at a time, after a stored end. */
export function endOfNext(
  edges: QuotaEdges,
  process: number,
  { nowMs, storedEndMs }: { readonly nowMs: number; readonly storedEndMs: number },
): number {
  return edgeAfter(edges, process, Math.max(nowMs, storedEndMs + guardMs(edges)));
}

/** Returns half of a period, or a day. */
function guardMs({ lengthMs }: QuotaEdges): number {
  return Math.min(Math.floor(lengthMs / 2), GUARD_MAX_MS);
}
