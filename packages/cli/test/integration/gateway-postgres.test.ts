/** Two gateways and a load test on PostgreSQL: they share keys, limits and balances. */

import { once } from "node:events";
import { createKey } from "@zae-limiter/gateway/keys.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { describePostgres } from "@zae-limiter/test-engines/postgres.ts";
import { POSTGRES_PASSWORD } from "@zae-limiter/test-engines/postgres-server.ts";
import { Binary, collect } from "@zae-limiter/test-support/binary.ts";
import { json, Upstream } from "@zae-limiter/test-support/llm/upstream.ts";
import { newSchema, type TestSchema } from "@zae-limiter/test-support/postgres-schema.ts";
import { afterAll, beforeAll, expect, it } from "vitest";

const CALLS = 10;
const LIMIT = 6;
const CALL = { model: "gpt-4o", messages: [{ role: "user", content: "hello" }] };
const CHOICE = { index: 0, message: { role: "assistant", content: "hi" } };
const USAGE = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 };

describePostgres("gateways", (server) => {
  const binary = new Binary();
  let schema: TestSchema;
  let repository: Repository;
  let upstream: Upstream;
  let env: Record<string, string>;

  beforeAll(async () => {
    schema = await newSchema(server);
    repository = await Repository.open(schema.url);
    await repository.limits.setSystem([`rpm:${LIMIT}/hour`, "tpm:100000/hour"]);
    upstream = await Upstream.start();
    upstream.replyWith(json({ object: "chat.completion", choices: [CHOICE], usage: USAGE }));
    env = { ZAEL_URL: schema.url, OPENAI_API_KEY: "sk-real" };
  });
  afterAll(async () => {
    await repository.close();
    await upstream.stop();
    await schema.drop();
  });

  /** Starts a gateway with its dashboard; returns where they are, and how to end it. */
  async function start() {
    const places = ["-u", `${upstream.url}/v1`, "--port", "0", "--dashboard"];
    const args = ["gateway", ...places, "--dashboard-port", "0", "--json"];
    const child = binary.start(args, { env });
    const ended = collect(child);
    const stdout = child.stdout as NonNullable<typeof child.stdout>;
    const [line] = (await once(stdout, "data")) as [string];
    const served = JSON.parse(line) as { url: string; dashboard: string };
    const end = async () => {
      child.kill("SIGTERM");
      const { code, out, err } = await ended;
      expect(code).toBe(0);
      return out + err;
    };
    return { ...served, end };
  }

  it("two gateways grant what one limit has, and show no password", async () => {
    const { key } = await createKey(repository, "team-a", undefined);
    const gateways = [await start(), await start()];
    const statuses = await Promise.all(
      Array.from({ length: CALLS }, async (_, at) => {
        const response = await fetch(`${gateways[at % 2]?.url}/v1/chat/completions`, {
          method: "POST",
          headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
          body: JSON.stringify(CALL),
        });
        await response.text();
        return response.status;
      }),
    );
    expect(statuses.filter((status) => status === 200)).toHaveLength(LIMIT);
    expect(statuses.filter((status) => status === 429)).toHaveLength(CALLS - LIMIT);
    const shown: string[] = [];
    for (const { dashboard } of gateways) {
      const first = await fetch(dashboard, { redirect: "manual" });
      const cookie = first.headers.get("set-cookie")?.split(";", 1)[0] ?? "";
      for (const path of ["/", "/api/overview", "/api/status"]) {
        const page = await fetch(new URL(path, dashboard), { headers: { cookie } });
        shown.push(await page.text(), JSON.stringify([...page.headers]));
      }
    }
    for (const { end } of gateways) shown.push(await end());
    expect(shown.join("").length).toBeGreaterThan(1000);
    expect(shown.join("")).not.toContain(POSTGRES_PASSWORD);
    const states = await repository.buckets.list("team-a");
    const consumed = states.map(({ limitName, totalConsumed }) => [limitName, totalConsumed]);
    expect(Object.fromEntries(consumed)).toEqual({ rpm: LIMIT, tpm: 10 * LIMIT });
  });
});
