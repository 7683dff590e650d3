/** Traces of a limiter, with the real SDK and local DynamoDB. */

import { context, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  AlwaysOffSampler,
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  type Sampler,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { RateLimiter, Repository } from "@zae-limiter/limiter/index.ts";
import { observe } from "@zae-limiter/limiter/otel/index.ts";
import { describeEngines } from "@zae-limiter/test-engines/engines.ts";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";

const REQUEST = { entityId: "key-1", resource: "gpt-4", consume: { rpd: 1 } };

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});
beforeAll(() => void context.setGlobalContextManager(new AsyncLocalStorageContextManager()));
afterAll(() => context.disable());

function tracing(sampler?: Sampler) {
  const exporter = new InMemorySpanExporter();
  const spanProcessors = [new SimpleSpanProcessor(exporter)];
  const provider = new BasicTracerProvider({ spanProcessors, ...(sampler && { sampler }) });
  ends.push(() => provider.shutdown());
  const spans = (): readonly ReadableSpan[] => exporter.getFinishedSpans();
  return { tracer: provider.getTracer("test"), spans };
}

describeEngines("the traces of a limiter", ({ endpoint }) => {
  async function opened(): Promise<RateLimiter> {
    const table = `traces-${crypto.randomUUID()}`;
    const repository = await Repository.createTable(table, { endpoint, timeoutMs: 20_000 });
    await repository.limits.setSystem(["rpd:2/day"]);
    const limiter = new RateLimiter(repository);
    ends.push(() => limiter.close());
    await limiter.acquire(REQUEST);
    return limiter;
  }

  it("the traces of a limiter have a span per acquire, and its requests to the store as children", async () => {
    const limiter = await opened();
    const { tracer, spans } = tracing();
    ends.push(observe(limiter, { tracer, meter: false }));
    await limiter.acquire(REQUEST);
    const [request, acquire, ...more] = spans();
    expect(more).toEqual([]);
    expect(acquire).toMatchObject({
      name: "acquire gpt-4",
      attributes: {
        "zae_limiter.outcome": "granted",
        "zae_limiter.entity": "key-1",
        "zae_limiter.attempts": 1,
      },
    });
    expect(request?.attributes).toMatchObject({
      "db.system.name": "aws.dynamodb",
      "db.operation.name": "UpdateItem",
      "aws.dynamodb.consumed_capacity": [expect.stringContaining('"CapacityUnits":1')],
    });
    expect(request?.parentSpanContext?.spanId).toBe(acquire?.spanContext().spanId);
    await limiter.tryAcquire(REQUEST);
    expect(spans().at(-1)?.attributes).toMatchObject({
      "zae_limiter.outcome": "refused",
      "zae_limiter.limit": "rpd",
      "zae_limiter.hierarchy.level": "entity",
    });
  });

  it("the traces of a limiter are the parent of what the work of run does", async () => {
    const limiter = await opened();
    const { tracer, spans } = tracing();
    ends.push(observe(limiter, { tracer, meter: false }));
    await limiter.run(REQUEST, async () => tracer.startSpan("call the model").end());
    const acquire = spans().find(({ name }) => name === "acquire gpt-4");
    const work = spans().find(({ name }) => name === "call the model");
    expect(work?.parentSpanContext?.spanId).toBe(acquire?.spanContext().spanId);
    expect(trace.getActiveSpan()).toBeUndefined();
  });

  it("the traces of a limiter are not made where the sampler says so", async () => {
    const limiter = await opened();
    const { tracer, spans } = tracing(new AlwaysOffSampler());
    ends.push(observe(limiter, { tracer, meter: false }));
    await limiter.acquire(REQUEST);
    await limiter.tryAcquire(REQUEST);
    expect(spans()).toEqual([]);
  });

  it("the traces of a limiter show what an acquire has thrown", async () => {
    const limiter = await opened();
    const { tracer, spans } = tracing();
    ends.push(observe(limiter, { tracer, meter: false }));
    await expect(limiter.acquire({ ...REQUEST, consume: { rpd: -1 } })).rejects.toThrow("rpd");
    expect(spans()[0]).toMatchObject({ name: "acquire gpt-4", status: { code: 2 } });
  });
});
