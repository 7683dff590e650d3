/**
 * Alerts by several processes, on a file and on shards, and senders, one of which is killed while
 * it waits.
 */

import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { AlertSender } from "@zae-limiter/gateway/alerts/sender.ts";
import { RateLimiter, Repository } from "@zae-limiter/limiter/index.ts";
import { createTable, deleteTable } from "@zae-limiter/limiter/storage/dynamodb/create-table.ts";
import { DynamoItemStore } from "@zae-limiter/limiter/storage/dynamodb/item-store.ts";
import { describeEngine } from "@zae-limiter/test-engines/engines.ts";
import { Binary } from "@zae-limiter/test-support/binary.ts";
import { splitInto } from "@zae-limiter/test-support/force-split.ts";
import { newName } from "@zae-limiter/test-support/stores.ts";
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

describeEngine("dynoxide", "alerts of a bucket with shards", ({ endpoint }) => {
  test("eight processes that use up four shards together write exactly three alerts", async () => {
    const table = newName();
    // The engine shares the machine with other tests, so deadlines prove nothing here.
    const connection = { endpoint, timeoutMs: 20_000 };
    await createTable({ table, endpoint, stream: false });
    const limiter = new RateLimiter(await Repository.createTable(table, connection));
    const { limits, alerts, namespaceId } = limiter.repository;
    const call = { entityId: "team-a", resource: "api" };
    await limits.setEntity("team-a", ["req:100/month UTC alerts 50,80,100"]);
    await limiter.acquire({ ...call, consume: { req: 4 } });
    const items = new DynamoItemStore({ table, ...connection });
    await splitInto(items, { namespaceId, ...call }, 4, Date.now());
    // A shard has 24 left: two calls fill it, and all eight fill the four of them.
    const take = (req: number) =>
      new Binary().run([
        ...["acquire", "team-a", "api", "-c", `req=${req}`],
        ...["--url", `dynamodb://${table}?endpoint=${endpoint}`, "--timeout", "20"],
      ]);
    const taken = await Promise.all(Array.from({ length: 8 }, () => take(11)));
    expect(taken.map(({ code }) => code)).toEqual(Array.from({ length: 8 }, () => 0));
    expect((await alerts.list()).map(({ percent }) => percent)).toEqual([80, 50]);
    await Promise.all(Array.from({ length: 4 }, () => take(2)));
    expect(await limiter.available(call)).toEqual({ req: 0 });
    expect((await alerts.list()).map(({ percent }) => percent)).toEqual([100, 80, 50]);
    await items.close();
    await limiter.close();
    await deleteTable({ table, endpoint });
  });
});
