/** Which addresses a webhook may have: those of the public internet, unless more is allowed. */

import { BlockList, isIPv6 } from "node:net";

/** Networks of one machine, one site or no machine, by the registries of special addresses. */
const SPECIAL_V4 = [
  ...["0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16"],
  ...["172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16"],
  ...["198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"],
];
/** Networks that carry an address of IPv4 in them are refused whole. */
const SPECIAL_V6 = [
  ...["::/96", "::ffff:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23"],
  ...["2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10"],
  ...["fec0::/10", "ff00::/8"],
];

// One list for both would compare addresses of IPv4 with the networks of IPv6 that carry them.
const specialV4 = listOf(SPECIAL_V4, "ipv4");
const specialV6 = listOf(SPECIAL_V6, "ipv6");

/** Whether an address of IPv4 or IPv6 is one of the public internet. */
export function isPublic(address: string): boolean {
  const [bare = ""] = address.split("%", 1);
  return isIPv6(bare) ? !specialV6.check(bare, "ipv6") : !specialV4.check(bare, "ipv4");
}

function listOf(networks: readonly string[], family: "ipv4" | "ipv6"): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", bits = ""] = network.split("/");
    list.addSubnet(address, Number(bits), family);
  }
  return list;
}
