/** The commands `alerts` and `alerts webhook`. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "@zae-limiter/test-support/temporary-folder.ts";
import { describe, expect, test } from "vitest";
import { temporaryStore } from "../../temporary.ts";

const directory = temporaryFolder();
const store = temporaryStore();
const LIMIT = "usd:$10/month UTC alerts 50,80";

describe("alerts", () => {
  test("alerts are listed with their use in dollars and their delivery", async () => {
    const { run, json } = store.namespace();
    const set = await run("entity", "set-limits", "team-a", "-r", "api", "-l", LIMIT);
    expect(set.code).toBe(0);
    expect((await run("alerts", "list")).out).toBe("There are no alerts\n");
    expect((await run("entity", "get-limits", "team-a", "-r", "api")).out).toContain(
      "alerts at 50, 80 %",
    );
    const taken = await run("acquire", "team-a", "api", "-c", "usd=8500000");
    expect(taken).toMatchObject({ code: 0, err: "" });
    const { out } = await run("alerts", "list");
    expect(out).toMatch(/team-a +api +usd +80 % +\$8\.50 of \$10\.00 +open/);
    expect(out).toMatch(/team-a +api +usd +50 % +\$8\.50 of \$10\.00 +open/);
    const { alerts } = await json<{ alerts: object[] }>("alerts", "list", "-e", "team-a");
    expect(alerts).toMatchObject([
      { percent: 80, used: 8_500_000, granted: 10_000_000, limit: LIMIT },
      { percent: 50, delivery: { state: "open", attempts: 0, delivered_to: [] } },
    ]);
    expect((await json<{ alerts: object[] }>("alerts", "list", "--state", "ended")).alerts).toEqual(
      [],
    );
  });

  test("a webhook is set, listed without its secret and removed", async () => {
    const { run, json } = store.namespace();
    await run("system", "set-limits", "-l", "rpm:1");
    expect((await run("alerts", "webhook", "list")).out).toBe("There are no webhooks\n");
    const { out } = await run("alerts", "webhook", "set", "ops", "https://example.com/a");
    expect(out).toMatch(
      /^Alerts are posted to ops\. Its secret, shown this once:\nwhsec_\S{44}\n$/,
    );
    const slack = ["alerts", "webhook", "set", "chat", "https://example.com/b", "--slack"];
    expect((await run(...slack)).out).toBe("Alerts are posted to chat\n");
    expect(await json("alerts", "webhook", "list")).toEqual({
      webhooks: [
        { name: "chat", url: "https://example.com/b", format: "slack", allow_private: false },
        { name: "ops", url: "https://example.com/a", format: "json", allow_private: false },
      ],
    });
    expect((await run("alerts", "webhook", "delete", "ops")).out).toBe("Removed the webhook ops\n");
    expect(await run("alerts", "webhook", "delete", "ops")).toMatchObject({
      code: 1,
      err: "zae-limiter: There is no webhook ops\n",
    });
    const plain = await run("alerts", "webhook", "set", "ops", "http://example.com/");
    expect(plain.err).toContain("expected https");
  });

  test("a sender without a webhook says how to set one, and ends when it is told to", async () => {
    const { run } = store.namespace();
    await run("system", "set-limits", "-l", "rpm:1");
    const { code, err } = await run("alerts", "run", "--once");
    expect(code).toBe(0);
    expect(err).toContain("There is no webhook yet: ");
  });

  test("a sender takes webhooks from the file of a gateway, and says what is wrong in it", async () => {
    const { run } = store.namespace();
    await run("system", "set-limits", "-l", "rpm:1");
    const file = join(directory, "gateway.yaml");
    writeFileSync(file, "webhooks:\n  - { name: chat, url_env: CHAT_URL, format: slack }\n");
    const wrong = await run("alerts", "run", "--once", "--config", file);
    expect(wrong).toMatchObject({ code: 1 });
    expect(wrong.err).toContain(`${file}:2:5: webhooks[0]: the variable CHAT_URL is not set`);
    expect(wrong.err).toContain("has 1 problem; nothing was delivered");
    writeFileSync(file, "webhooks: [{ name: c, url: 'https://chat.test/', format: slack }]");
    const { code, err } = await run("alerts", "run", "--once", "--config", file);
    expect({ code, err }).toEqual({ code: 0, err: "" });
  });
});
