/**
 * The entity id of a client's address. IPv4 addresses that arrive as `::ffff:1.2.3.4` are the same
 * client as `1.2.3.4`, however they are spelled. Some proxies report the port of a connection too,
 * which is not a part of the address. An IPv6 client usually owns a whole subnet, so only that
 * counts.
 */

import { isIPv4, isIPv6 } from "node:net";
import { entityIdOf } from "./entity-ids.ts";

/** The spelling of sockets, which needs no parser. */
const MAPPED_PATTERN = /^::ffff:(?:0:)?(\d+\.\d+\.\d+\.\d+)$/i;
/** `1.2.3.4:80`, `[::1]:80` or `[::1]`. */
const WITH_PORT_PATTERN = /^(?:\[([^\]]+)\]|(\d+\.\d+\.\d+\.\d+))(?::\d+)?$/;
const GROUPS = 8;
const GROUP_BITS = 16;

/** Returns `1.2.3.4`, or for IPv6 eight groups and the prefix: `2001:db8:0:1200:0:0:0:0-56`. */
export function addressId(address: string, ipv6Subnet: number): string {
  if (!address.includes(":")) return entityIdOf(address);
  const mapped = MAPPED_PATTERN.exec(address)?.[1];
  if (mapped !== undefined && isIPv4(mapped)) return mapped;
  const [, ipv6 = address, ipv4 = ""] = WITH_PORT_PATTERN.exec(address) ?? [];
  if (isIPv4(ipv4)) return ipv4;
  const [bare = ""] = ipv6.split("%", 1);
  if (!isIPv6(bare)) return entityIdOf(address);
  const all = groupsOf(bare);
  const unmapped = unmappedOf(all);
  if (unmapped !== undefined) return unmapped;
  const groups = all.map((group, at) => {
    const bits = Math.min(GROUP_BITS, Math.max(0, ipv6Subnet - at * GROUP_BITS));
    const mask = (0xffff << (GROUP_BITS - bits)) & 0xffff;
    return (group & mask).toString(16);
  });
  return `${groups.join(":")}-${ipv6Subnet}`;
}

/** Returns the IPv4 address in `::ffff:a.b.c.d` and `::ffff:0:a.b.c.d`; `undefined` for others. */
function unmappedOf(groups: readonly number[]): string | undefined {
  const [high = 0, low = 0] = groups.slice(-2);
  const prefix = groups.slice(0, -2).join(":");
  if (prefix !== "0:0:0:0:0:65535" && prefix !== "0:0:0:0:65535:0") return undefined;
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join(".");
}

/** Returns the groups of an IPv6 address; the URL parser reduces all spellings to one. */
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
