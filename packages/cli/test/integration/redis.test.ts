/** The command line on Redis and Valkey: every kind of command, and no output with the password. */

import { join } from "node:path";
import { describeRedis, ownPrefix } from "@zae-limiter/test-engines/redis.ts";
import { fetchedValkey, REDIS_PASSWORD } from "@zae-limiter/test-engines/redis-server.ts";
import { cli } from "@zae-limiter/test-support/captured.ts";
import { removeKeys } from "@zae-limiter/test-support/redis-prefix.ts";
import { temporaryFolder } from "@zae-limiter/test-support/temporary-folder.ts";
import { afterAll, expect, it } from "vitest";

describeRedis("the command line", (server) => {
  const { prefix, url } = ownPrefix(server);
  const folder = join(temporaryFolder(), "local");
  afterAll(() => removeKeys(server, prefix));

  async function run(...words: string[]) {
    const { code, out, err } = await cli([...words, "--url", url]);
    expect(out + err).not.toContain(REDIS_PASSWORD);
    return { code, text: out + err };
  }

  it("limits, acquires, usage, audit and namespaces work as elsewhere", async () => {
    expect((await run("system", "set-limits", "-l", "rpm:5/day")).code).toBe(0);
    expect((await run("entity", "create", "key-1")).code).toBe(0);
    expect((await run("acquire", "key-1", "gpt-4", "-c", "rpm=2")).code).toBe(0);
    expect((await run("acquire", "key-1", "gpt-4", "-c", "rpm=4")).code).toBe(3);
    expect((await run("peek", "key-1", "gpt-4")).text).toContain("rpm");
    expect((await run("usage", "list", "-r", "gpt-4")).text).toContain("key-1");
    expect((await run("audit", "list")).text).toContain("entity_created");
    expect((await run("namespace", "register", "tenant-a")).code).toBe(0);
    expect((await run("namespace", "list")).text).toContain("tenant-a");
    expect((await run("status")).text).toContain("Ready");
    expect((await run("check")).text).toContain("Compatible");
    expect(JSON.parse((await run("status", "--json")).text)).toMatchObject({});
    expect((await run("entity", "delete", "key-1", "--yes")).code).toBe(0);
  });

  it("a namespace is deleted, purged, and gone", async () => {
    expect((await run("namespace", "register", "tenant-b")).code).toBe(0);
    expect((await run("system", "set-limits", "-l", "rpm:5", "-N", "tenant-b")).code).toBe(0);
    expect((await run("namespace", "delete", "tenant-b", "--yes")).code).toBe(0);
    const { text } = await run("namespace", "orphans", "--json");
    const id = /"namespace_?[iI]d":\s*"([^"]+)"/.exec(text)?.[1] ?? "";
    expect((await run("namespace", "purge", id, "--yes")).code).toBe(0);
    expect((await run("namespace", "list")).text).not.toContain("tenant-b");
  });

  it("a hint that repeats the address hides its password", async () => {
    // A server without a password takes any.
    const address = new URL(url);
    if (address.password === "") address.password = REDIS_PASSWORD;
    const words = ["peek", "key-1", "gpt-4", "-N", "nowhere", "--url", address.href];
    const { code, out, err } = await cli(words);
    expect(code).not.toBe(0);
    expect(out + err).toContain(`…@${address.host}`);
    expect(out + err).not.toContain(address.password);
  });

  it("a server that is not there is named without its password", async () => {
    const address = `redis://:${REDIS_PASSWORD}@127.0.0.1:1`;
    const { code, out, err } = await cli(["status", "--url", address]);
    expect(code).not.toBe(0);
    expect(out + err).toContain("redis://127.0.0.1:1");
    expect(out + err).not.toContain(REDIS_PASSWORD);
  });

  it("local up --store valkey starts a server that programs and commands use", async () => {
    const local = (...words: string[]) => cli(["local", ...words, "--folder", folder]);
    const engine = await fetchedValkey();
    const started = await local("up", "--store", "valkey", "--engine", engine, "--port", "0");
    expect(started).toMatchObject({ code: 0, out: expect.stringContaining("valkey at redis://") });
    try {
      const { out } = await local("env");
      const address = /^export ZAEL_URL=(redis:\S+)$/.exec(out.trim())?.[1] ?? "";
      const limits = await cli(["system", "set-limits", "-l", "rpm:5", "--url", address]);
      expect(limits.code).toBe(0);
      expect((await local("status")).out).toMatch(/valkey .*running.*redis:/s);
      expect((await local("up", "--store", "valkey")).out).toContain("Already running");
      expect(await local("up")).toMatchObject({ code: 1 });
    } finally {
      expect((await local("down")).out).toContain("Stopped valkey");
    }
    expect((await local("up", "--store", "paper")).err).toContain("dynamodb, postgres, valkey");
  });

  it("a store without a schema has nothing to migrate", async () => {
    const { code, text } = await run("db", "migrate");
    expect([code, text]).toEqual([2, expect.stringContaining("no schema to migrate")]);
  });
});
