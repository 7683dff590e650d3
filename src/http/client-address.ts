/**
 * The entity id of a client's address. IPv4 addresses that arrive as `::ffff:1.2.3.4` are the same
 * client as `1.2.3.4`. An IPv6 client usually owns a whole subnet, so only the subnet counts.
 */

import { isIPv4, isIPv6 } from "node:net";
import { entityIdOf } from "./entity-ids.ts";

const MAPPED_PATTERN = /^::ffff:(?:0:)?(\d+\.\d+\.\d+\.\d+)$/i;
const GROUPS = 8;
const GROUP_BITS = 16;

/** Returns `1.2.3.4`, or for IPv6 eight groups and the prefix: `2001:db8:0:1200:0:0:0:0-56`. */
export function addressId(address: string, ipv6Subnet: number): string {
  if (!address.includes(":")) return entityIdOf(address);
  const mapped = MAPPED_PATTERN.exec(address)?.[1];
  if (mapped !== undefined && isIPv4(mapped)) return mapped;
  const [bare = ""] = address.split("%", 1);
  if (!isIPv6(bare)) return entityIdOf(address);
  const groups = groupsOf(bare).map((group, at) => {
    const bits = Math.min(GROUP_BITS, Math.max(0, ipv6Subnet - at * GROUP_BITS));
    const mask = (0xffff << (GROUP_BITS - bits)) & 0xffff;
    return (group & mask).toString(16);
  });
  return `${groups.join(":")}-${ipv6Subnet}`;
}

/** The URL parser knows every spelling of an IPv6 address and leaves one. */
function groupsOf(address: string): number[] {
  const shortest = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [head = "", tail] = shortest.split("::");
  const numbers = (text: string) =>
    text === "" ? [] : text.split(":").map((group) => Number.parseInt(group, 16));
  const first = numbers(head);
  if (tail === undefined) return first;
  const last = numbers(tail);
  return [...first, ...new Array<number>(GROUPS - first.length - last.length).fill(0), ...last];
}
