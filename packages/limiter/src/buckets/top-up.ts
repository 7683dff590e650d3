/** How much of an addition each shard of a bucket gets: at most what it has room for. Pure. */

import { mulAddDiv } from "../core/integers.ts";

/**
 * Splits an addition by room, and gives what the rounding leaves to the first shards that have room
 * left. `Infinity` fills all of them.
 */
export function splitByRoom(additionMilli: number, roomsMilli: readonly number[]): number[] {
  const rooms = roomsMilli.map((room) => Math.max(0, room));
  const total = rooms.reduce((sum, room) => sum + room, 0);
  if (additionMilli >= total) return rooms;
  const parts = rooms.map((room) => mulAddDiv(additionMilli, room, 0, total));
  let left = additionMilli - parts.reduce((sum, part) => sum + part, 0);
  for (let at = 0; at < parts.length && left > 0; at += 1) {
    const more = Math.min(left, (rooms[at] as number) - (parts[at] as number));
    parts[at] = (parts[at] as number) + more;
    left -= more;
  }
  return parts;
}
