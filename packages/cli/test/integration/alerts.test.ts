/** Alerts by several processes, and senders, one of which is killed while it waits. */

import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { AlertSender } from "@zae-limiter/gateway/alerts/sender.ts";
import { RateLimiter } from "@zae-limiter/limiter/index.ts";
import { Binary } from "@zae-limiter/test-support/binary.ts";
import { temporaryFolder } from "@zae-limiter/test-support/temporary-folder.ts";
import { expect, test } from "vitest";

const directory = temporaryFolder();

test("a sender that is killed leaves the alert to another one, which uses the same id", async () => {
  const url = `sqlite:${join(directory, "limits.db")}`;
  let laterMs = 0;
  const limiter = await RateLimiter.open(url, { clock: () => Date.now() + laterMs });
  const { limits, webhooks, alerts } = limiter.repository;
  await limits.setEntity("team-a", ["req:10/month UTC alerts 50"]);
  await limiter.acquire({ entityId: "team-a", resource: "api", consume: { req: 5 } });
  const requests: IncomingMessage[] = [];
  const arrived = new EventTarget();
  let answer = (_: ServerResponse): void => {};
  const server = createServer((request, response) => {
    requests.push(request);
    answer(response);
    arrived.dispatchEvent(new Event("request"));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  await webhooks.set("ops", { url: `http://127.0.0.1:${port}/`, allowPrivate: true });
  await alerts.list();

  const child = new Binary().start(["alerts", "run", "--url", url]);
  await once(arrived, "request");
  child.kill("SIGKILL");
  await once(child, "close");
  const [open] = await alerts.list();
  expect(open?.delivery).toMatchObject({ state: "open", attempts: 1 });

  answer = (response) => response.writeHead(204).end();
  const sender = new AlertSender(limiter.repository, { tell: () => {} });
  laterMs = 15_000;
  expect(await sender.deliver()).toBe(1);
  const [delivered] = await alerts.list();
  expect(delivered?.delivery).toMatchObject({ state: "delivered", attempts: 2 });
  const ids = requests.map(({ headers }) => headers["webhook-id"]);
  expect(ids).toEqual([open?.id, open?.id]);
  server.closeAllConnections();
  server.close();
  await limiter.close();
});

test("eight processes that use up a quota together write exactly three alerts", async () => {
  const url = `sqlite:${join(directory, "eight.db")}`;
  const limiter = await RateLimiter.open(url);
  const { limits, alerts } = limiter.repository;
  await limits.setEntity("team-a", ["req:100/month UTC alerts 50,80,100"]);
  const binary = new Binary();
  const take = (req: number) =>
    binary.run(["acquire", "team-a", "api", "-c", `req=${req}`, "--url", url]);
  const taken = await Promise.all(Array.from({ length: 8 }, () => take(12)));
  expect(taken.map(({ code }) => code)).toEqual(Array.from({ length: 8 }, () => 0));
  expect((await alerts.list()).map(({ percent }) => percent)).toEqual([80, 50]);
  await Promise.all(Array.from({ length: 8 }, () => take(1)));
  expect((await alerts.list()).map(({ percent }) => percent)).toEqual([100, 80, 50]);
  await limiter.close();
});
