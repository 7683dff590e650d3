import { createHmac } from "node:crypto";
import { AlertSender } from "@zae-limiter/gateway/alerts/sender.ts";
import { RateLimiter } from "@zae-limiter/limiter/index.ts";
import { AlertQueue } from "@zae-limiter/limiter/records/alerts/alert-queue.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import { CERTIFICATE } from "@zae-limiter/test-support/certificate.ts";
import { afterEach, describe, expect, test } from "vitest";
import { type Received, Receiver } from "../receiver.ts";

const NOW = Date.parse("2026-11-18T08:00:00Z");
const HOUR_MS = 3_600_000;
const closing: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const each of closing.splice(0)) await each.close();
});

async function receiverOf(...parameters: Parameters<typeof Receiver.start>): Promise<Receiver> {
  const receiver = await Receiver.start(...parameters);
  closing.push(receiver);
  return receiver;
}

/** A namespace in which half of a budget is used, with a clock that a test moves. */
class Stage {
  nowMs = NOW;
  readonly told: string[] = [];
  limiter!: RateLimiter;

  static async open(): Promise<Stage> {
    const stage = new Stage();
    stage.limiter = await RateLimiter.open("memory:", { clock: () => stage.nowMs });
    closing.push(stage.limiter);
    const { limits } = stage.repo;
    await limits.setEntity("team-a", ["usd:$10/month Europe/Berlin alerts 50"]);
    await stage.spend(5_000_000);
    return stage;
  }

  get repo() {
    return this.limiter.repository;
  }

  async spend(usd: number): Promise<void> {
    await this.limiter.acquire({ entityId: "team-a", resource: "api", consume: { usd } });
    await this.repo.alerts.list();
  }

  sender(options = {}): AlertSender {
    return new AlertSender(this.repo, { tell: (line) => this.told.push(line), ...options });
  }

  async delivery() {
    const [alert] = await this.repo.alerts.list();
    return alert?.delivery;
  }
}

function signatureOf({ headers, body }: Received, secret: string): string {
  const key = Buffer.from(secret.replace("whsec_", ""), "base64");
  const signed = `${headers["webhook-id"] as string}.${headers["webhook-timestamp"] as string}.${body}`;
  return `v1,${createHmac("sha256", key).update(signed).digest("base64")}`;
}

describe("webhooks of alerts", () => {
  test("an alert is posted once, signed, with its id, and recorded as delivered", async () => {
    const stage = await Stage.open();
    const receiver = await receiverOf();
    const spec = { url: receiver.url, allowPrivate: true };
    const { secret } = await stage.repo.webhooks.set("ops", spec);
    expect(await stage.sender().deliver()).toBe(1);
    expect(await stage.sender().deliver()).toBe(0);
    const [request] = receiver.received;
    const { headers, body } = request as Received;
    expect(receiver.received).toHaveLength(1);
    expect(headers["webhook-signature"]).toBe(signatureOf(request as Received, secret));
    expect(headers["webhook-timestamp"]).toBe(String(NOW / 1000));
    const id = `${stage.repo.namespaceId}#team-a#api#usd#${Date.parse("2026-11-30T23:00:00Z")}#50`;
    expect(headers["webhook-id"]).toBe(id);
    expect(JSON.parse(body)).toEqual({
      type: "limit.alert",
      timestamp: "2026-11-18T08:00:00.000Z",
      data: {
        id,
        namespace: "default",
        entity_id: "team-a",
        resource: "api",
        limit_name: "usd",
        limit: "usd:$10/month Europe/Berlin alerts 50",
        percent: 50,
        used: 5_000_000,
        granted: 10_000_000,
        period_start: "2026-10-31T23:00:00.000Z",
        period_end: "2026-11-30T23:00:00.000Z",
        text: "50 % of usd of team-a for api is used: $5.00 of $10.00, resets 2026-12-01 00:00 Europe/Berlin",
      },
    });
    expect(await stage.delivery()).toEqual({
      state: "delivered",
      endedAtMs: NOW,
      attempts: 1,
      deliveredTo: ["ops"],
    });
    expect(await stage.repo.alerts.list({ state: "open" })).toEqual([]);
  });

  test("a receiver that fails twice gets the same message again, later each time", async () => {
    const stage = await Stage.open();
    const receiver = await receiverOf((response, count) => {
      if (count > 2) response.writeHead(200).end("ok");
      else response.writeHead(503).end("not\nnow");
    });
    const other = await receiverOf();
    await stage.repo.webhooks.set("a", { url: receiver.url, allowPrivate: true });
    const slack = { url: other.url, allowPrivate: true, format: "slack" } as const;
    await stage.repo.webhooks.set("b", slack);
    const sender = stage.sender();
    await sender.deliver();
    expect(await stage.delivery()).toEqual({
      state: "open",
      attempts: 1,
      deliveredTo: ["b"],
      problem: "a: status 503: not now",
    });
    stage.nowMs += 14_999;
    expect(await sender.deliver()).toBe(0);
    stage.nowMs += 1;
    expect(await sender.deliver()).toBe(1);
    stage.nowMs += 29_999;
    expect(await sender.deliver()).toBe(0);
    stage.nowMs += 1;
    expect(await sender.deliver()).toBe(1);
    expect(await stage.delivery()).toMatchObject({ state: "delivered", deliveredTo: ["b", "a"] });
    const ids = receiver.received.map(({ headers, body }) => `${headers["webhook-id"]} ${body}`);
    expect(ids).toHaveLength(3);
    expect(new Set(ids).size).toBe(1);
    expect(other.received.map(({ body }) => JSON.parse(body) as unknown)).toEqual([
      {
        text: "50 % of usd of team-a for api is used: $5.00 of $10.00, resets 2026-12-01 00:00 Europe/Berlin",
      },
    ]);
  });

  test("an alert that was claimed by a sender that ended is delivered by another one", async () => {
    const stage = await Stage.open();
    const receiver = await receiverOf();
    await stage.repo.webhooks.set("ops", { url: receiver.url, allowPrivate: true });
    const queue = new AlertQueue(stage.repo[INTERNALS].records);
    const [alert] = await queue.due(1);
    expect(await queue.claim(alert as NonNullable<typeof alert>)).toBeDefined();
    expect(await queue.claim(alert as NonNullable<typeof alert>)).toBeUndefined();
    expect(await stage.sender().deliver()).toBe(0);
    stage.nowMs += 15_000;
    expect(await stage.sender().deliver()).toBe(1);
    expect(receiver.received).toHaveLength(1);
  });

  test("webhooks of a config file get alerts too, and a stored one of the same name wins", async () => {
    const stage = await Stage.open();
    const [stored, file] = [await receiverOf(), await receiverOf()];
    await stage.repo.webhooks.set("ops", { url: stored.url, allowPrivate: true });
    const secret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
    const common = { url: file.url, format: "json", allowPrivate: true, secret } as const;
    const webhooks = ["ops", "file"].map((name) => ({ name, ...common }));
    expect(await stage.sender({ webhooks }).deliver()).toBe(1);
    expect([stored.received.length, file.received.length]).toEqual([1, 1]);
    const [request] = file.received as [Received];
    expect(request.headers["webhook-signature"]).toBe(signatureOf(request, secret));
    const ended = { state: "delivered", deliveredTo: ["ops", "file"] };
    expect(await stage.delivery()).toMatchObject(ended);
    expect(await stage.repo.webhooks.list()).toHaveLength(1);
  });

  test("several senders deliver each alert once", async () => {
    const stage = await Stage.open();
    const receiver = await receiverOf();
    await stage.repo.webhooks.set("ops", { url: receiver.url, allowPrivate: true });
    const counts = await Promise.all([1, 2, 3, 4].map(() => stage.sender().deliver()));
    expect(counts.reduce((sum, count) => sum + count)).toBe(1);
    expect(receiver.received).toHaveLength(1);
  });

  test("an alert is given up after a day, and one without webhooks waits", async () => {
    const stage = await Stage.open();
    expect(await stage.sender().deliver()).toBe(0);
    expect(await stage.delivery()).toMatchObject({ state: "open", attempts: 0 });
    const receiver = await receiverOf((response) => response.writeHead(500).end());
    await stage.repo.webhooks.set("ops", { url: receiver.url, allowPrivate: true });
    const sender = stage.sender();
    for (let hour = 0; hour < 24; hour += 1) {
      await sender.deliver();
      stage.nowMs += HOUR_MS;
    }
    expect(await stage.delivery()).toMatchObject({ state: "open" });
    const posted = receiver.received.length;
    await sender.deliver();
    expect(await stage.delivery()).toMatchObject({ state: "given_up", deliveredTo: [] });
    expect(receiver.received.length).toBe(posted);
    expect(stage.told.at(-1)).toContain("Gave up");
  });

  test("a gateway's sender runs until it is stopped, and goes on after a store that fails", async () => {
    const stage = await Stage.open();
    const receiver = await receiverOf();
    await stage.repo.webhooks.set("ops", { url: receiver.url, allowPrivate: true });
    const sender = stage.sender();
    sender.start();
    while (receiver.received.length === 0) await new Promise((resolve) => setImmediate(resolve));
    await sender.stop();
    expect(await stage.delivery()).toMatchObject({ deliveredTo: ["ops"] });
  });
});

describe("addresses of webhooks", () => {
  const reach = async (url: string, options = {}, spec = {}) => {
    const stage = await Stage.open();
    await stage.repo.webhooks.set("ops", { url, ...spec });
    await stage.sender(options).deliver();
    return stage.delivery();
  };
  const named = (address: string) => ({ resolve: async () => address, trust: CERTIFICATE });

  test("https reaches the address that the name led to once, and checks its certificate", async () => {
    const receiver = await receiverOf(undefined, true);
    const asked: string[] = [];
    const resolve = async (name: string) => {
      asked.push(name);
      return "127.0.0.1";
    };
    const url = `https://receiver.test:${receiver.port}/hook`;
    const options = { resolve, trust: CERTIFICATE };
    expect(await reach(url, options, { allowPrivate: true })).toMatchObject({ state: "delivered" });
    expect(asked).toEqual(["receiver.test"]);
    expect(receiver.received[0]?.headers.host).toBe(`receiver.test:${receiver.port}`);
    const other = `https://other.test:${receiver.port}/hook`;
    const refused = await reach(other, options, { allowPrivate: true });
    expect(refused?.problem).toContain("does not match certificate's altnames");
  });

  test.each([
    ...["127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1"],
    ...["0.0.0.0", "224.0.0.1", "::1", "::", "fe80::1", "fd00::1", "::ffff:127.0.0.1"],
    ...["64:ff9b::7f00:1", "2002:7f00:1::", "::127.0.0.1", "fe80::1%eth0"],
  ])("a name that leads to %s is refused without a connection", async (address) => {
    const receiver = await receiverOf(undefined, true);
    const found = await reach(`https://receiver.test:${receiver.port}/`, named(address));
    expect(found?.problem).toBe(
      "ops: receiver.test is at a private address, which the webhook does not allow",
    );
    expect(receiver.received).toEqual([]);
  });

  test.each([
    ...["https://127.0.0.1/", "https://2130706433/", "https://0x7f.1/", "https://[::1]/"],
    ...["https://[::ffff:7f00:1]/", "https://169.254.169.254/latest/meta-data", "https://0/"],
  ])("the address %s is refused without a connection", async (url) => {
    expect((await reach(url))?.problem).toContain("is at a private address");
  });

  test.each([
    ["http://example.com/", {}, "expected https"],
    ["ftp://example.com/", { allowPrivate: true }, "expected https"],
    ["https://user:secret@example.com/", {}, "bodies are signed instead"],
    ["example.com", {}, "expected an address such as"],
    [`https://example.com/${"a".repeat(3000)}`, {}, "expected an address such as"],
  ])("the address %s is refused when it is set", async (url, spec, reason) => {
    const stage = await Stage.open();
    await expect(stage.repo.webhooks.set("ops", { url, ...spec })).rejects.toThrow(reason);
    expect(await stage.repo.webhooks.list()).toEqual([]);
  });

  test("plain http goes to private addresses alone", async () => {
    const found = await reach("http://example.com/", named("8.8.8.8"), { allowPrivate: true });
    expect(found?.problem).toContain("plain http is for private addresses");
  });

  test("a redirect is not followed, and a long answer is not read to its end", async () => {
    const target = await receiverOf();
    const receiver = await receiverOf((response) => {
      response.writeHead(302, { location: target.url });
      const write = (): unknown => response.destroyed || response.write("x".repeat(65_536), write);
      write();
    });
    const found = await reach(receiver.url, {}, { allowPrivate: true });
    expect(found).toMatchObject({ state: "open" });
    expect(found?.problem).toBe(`ops: status 302: ${"x".repeat(200)}`);
    expect(target.received).toEqual([]);
  });
});

test("a webhook's secret is shown once, and its address is not in the audit log", async () => {
  const { repo } = await Stage.open();
  const spec = { url: "https://hooks.example.com/T0/secret-path", format: "slack" } as const;
  const { secret } = await repo.webhooks.set("chat", spec, { principal: "ops" });
  expect(Buffer.from(secret.slice("whsec_".length), "base64")).toHaveLength(32);
  expect(await repo.webhooks.list()).toEqual([{ name: "chat", ...spec, allowPrivate: false }]);
  const [event] = await repo.audit.list("$SYSTEM");
  expect(event).toMatchObject({
    action: "webhook_set",
    principal: "ops",
    details: { name: "chat", host: "hooks.example.com", format: "slack", allow_private: false },
  });
  expect(await repo.webhooks.delete("chat")).toBe(true);
  expect(await repo.webhooks.delete("chat")).toBe(false);
  expect((await repo.audit.list("$SYSTEM"))[0]?.action).toBe("webhook_deleted");
});
