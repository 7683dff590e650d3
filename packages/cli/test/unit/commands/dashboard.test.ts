/** The command `dashboard`: where it listens, and to what it answers. */

import { cli } from "@zae-limiter/test-support/captured.ts";
import { expect, test } from "vitest";

const BASE = ["dashboard", "--url", "memory:", "--no-open", "--json"];

test("an address that other machines reach is refused without a token of some length", async () => {
  for (const host of ["0.0.0.0", "::", "192.0.2.1"]) {
    const { code, err } = await cli([...BASE, "--host", host]);
    expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining("needs --token") });
  }
  const short = await cli([...BASE, "--host", "0.0.0.0", "--token", "short"]);
  expect(short).toMatchObject({ code: 2, err: expect.stringContaining("at least 16") });
});

test("the dashboard prints an address with a token, answers to it alone, and ends with Ctrl-C", async () => {
  let asked: Promise<number[]> | undefined;
  const { code } = await cli([...BASE, "--port", "0"], {
    onOutput: (text, interrupt) => {
      const { url } = JSON.parse(text) as { url: string };
      asked ??= statuses(url).finally(() => interrupt("SIGINT"));
    },
  });
  expect(code).toBe(130);
  expect(await asked).toEqual([303, 401, 200]);
});

/** With the token in the address, without it, and with the cookie. */
async function statuses(url: string): Promise<number[]> {
  const { origin } = new URL(url);
  const login = await fetch(url, { redirect: "manual" });
  const cookie = login.headers.get("set-cookie")?.split(";", 1)[0] ?? "";
  const key = login.headers.get("location")?.split("#")[1] ?? "";
  const refused = await fetch(`${origin}/api/session`);
  const granted = await fetch(`${origin}/api/session?${key}`, { headers: { cookie } });
  return [login.status, refused.status, granted.status];
}
