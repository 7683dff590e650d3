/** Addresses become entity ids: one for each IPv4 client and for each IPv6 subnet. */

import { expect, test } from "vitest";
import { checkEntityId } from "../../../src/domain/names.ts";
import { addressId } from "../../../src/http/client-address.ts";

test.each([
  ["1.2.3.4", 56, "1.2.3.4"],
  ["::ffff:1.2.3.4", 56, "1.2.3.4"],
  ["::FFFF:1.2.3.4", 56, "1.2.3.4"],
  ["::1", 56, "0:0:0:0:0:0:0:0-56"],
  ["::1", 128, "0:0:0:0:0:0:0:1-128"],
  ["2001:db8:1:23ff::5", 56, "2001:db8:1:2300:0:0:0:0-56"],
  ["2001:0DB8:0001:2301:0:0:0:9", 56, "2001:db8:1:2300:0:0:0:0-56"],
  ["2001:db8:1:23ff::5", 64, "2001:db8:1:23ff:0:0:0:0-64"],
  ["fe80::1%eth0", 128, "fe80:0:0:0:0:0:0:1-128"],
  ["2001:db8::ffff:1.2.3.4", 128, "2001:db8:0:0:0:ffff:102:304-128"],
  ["unix:/run/app.sock", 56, "enc:unix:@2frun@2fapp.sock"],
])("%s with /%i is %s", (address, ipv6Subnet, id) => {
  expect(addressId(address, ipv6Subnet)).toBe(id);
  checkEntityId(id);
});
