import { GatewayMetrics } from "@zae-limiter/gateway/gateway-metrics.ts";
import { RateLimiter } from "@zae-limiter/limiter/index.ts";
import { expect, test } from "vitest";

async function metrics() {
  const limiter = await RateLimiter.open("memory:");
  const gateway = new GatewayMetrics(limiter, () => 3);
  const lines = () =>
    gateway
      .text()
      .split("\n")
      .filter((line) => line.startsWith("zae_limiter_gateway"));
  const stop = async () => {
    gateway.stop();
    await limiter.close();
  };
  return { limiter, gateway, lines, stop };
}

test("the metrics count answers, refusals and calls that are read on by their outcome", async () => {
  const { gateway, lines, stop } = await metrics();
  gateway.answered(200);
  gateway.answered(200);
  gateway.answered(499);
  gateway.refused("unknown key");
  gateway.readOn("complete");
  gateway.readOn("too many");
  gateway.readOn("complete");
  expect(lines()).toEqual([
    'zae_limiter_gateway_requests_total{http_response_status_code="200"} 2',
    'zae_limiter_gateway_requests_total{http_response_status_code="499"} 1',
    'zae_limiter_gateway_refusals_total{zae_limiter_reason="unknown key"} 1',
    'zae_limiter_gateway_read_on_total{zae_limiter_outcome="complete"} 2',
    'zae_limiter_gateway_read_on_total{zae_limiter_outcome="too many"} 1',
    "zae_limiter_gateway_open_requests 3",
  ]);
  await stop();
});

test("neither statuses nor names of models let the metrics grow without end", async () => {
  const { limiter, gateway, lines, stop } = await metrics();
  for (let status = 100; status < 1000; status += 1) gateway.answered(status);
  expect(lines()).toHaveLength(102);
  await limiter.repository.limits.setSystem(["rpm:1000000"]);
  const use = async (from: number, to: number) => {
    for (let name = from; name < to; name += 1) {
      await limiter.acquire({ entityId: "a", resource: `model-${name}`, consume: { rpm: 1 } });
    }
    return gateway.text().length;
  };
  const before = await use(0, 300);
  const after = await use(300, 2000);
  expect(after - before).toBeLessThan(1000);
  await stop();
});
