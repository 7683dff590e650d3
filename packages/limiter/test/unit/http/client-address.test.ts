/** Addresses become entity ids: one for each IPv4 client and for each IPv6 subnet. */

import { checkEntityId } from "@zae-limiter/limiter/domain/names.ts";
import { addressId } from "@zae-limiter/limiter/http/client-address.ts";
import { expect, test } from "vitest";

test.each([
  ["1.2.3.4", 56, "1.2.3.4"],
  ["::ffff:1.2.3.4", 56, "1.2.3.4"],
  ["::FFFF:1.2.3.4", 56, "1.2.3.4"],
  ["::ffff:102:304", 56, "1.2.3.4"],
  ["0:0:0:0:0:ffff:1.2.3.4", 56, "1.2.3.4"],
  ["0000:0000:0000:0000:0000:FFFF:0102:0304", 56, "1.2.3.4"],
  ["::ffff:0:1.2.3.4", 56, "1.2.3.4"],
  ["::ffff:1.2.3.4%eth0", 56, "1.2.3.4"],
  ["::fffe:1.2.3.4", 128, "0:0:0:0:0:fffe:102:304-128"],
  ["1.2.3.4:5678", 56, "1.2.3.4"],
  ["[::ffff:1.2.3.4]:5678", 56, "1.2.3.4"],
  ["[2001:db8:1:23ff::5]:443", 56, "2001:db8:1:2300:0:0:0:0-56"],
  ["[2001:db8:1:23ff::5]", 56, "2001:db8:1:2300:0:0:0:0-56"],
  ["1.2.3.999:80", 56, "1.2.3.999:80"],
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
