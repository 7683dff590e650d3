/** Gateways in front of the double of a provider. */

import { Gateway, type GatewayOptions } from "@zae-limiter/gateway/gateway.ts";
import { createKey } from "@zae-limiter/gateway/keys.ts";
import { checkUpstream, type UpstreamSpec } from "@zae-limiter/gateway/upstreams.ts";
import { RateLimiter } from "@zae-limiter/limiter/index.ts";
import { Upstream } from "@zae-limiter/test-support/llm/upstream.ts";

/** The provider's own keys, which no client may see. */
export const KEYS = { OPENAI_API_KEY: "sk-real-provider-key", ANTHROPIC_API_KEY: "sk-ant-real" };

/** A double of a provider. */
interface Provider {
  readonly url: string;
  models: readonly string[] | undefined;
}

/** Names the double as an upstream. */
export function upstreamAt(upstream: Provider, more: object = {}, isOpen = false): UpstreamSpec {
  return checkUpstream({ url: `${upstream.url}/v1`, ...more }, KEYS, isOpen);
}

/** The models that the double lists where a test names no others. */
const MODELS = ["gpt-4o", "claude-test", "text-embedding-3-small"];

/** Starts a gateway on a free port. */
export function startGateway(
  limiter: RateLimiter,
  upstream: Provider,
  options: Partial<GatewayOptions> = {},
): Promise<Gateway> {
  upstream.models ??= MODELS;
  return Gateway.start({
    limiter,
    upstreams: [upstreamAt(upstream)],
    host: "127.0.0.1",
    port: 0,
    isOpen: false,
    maxWaitSeconds: 0,
    bodyBytesMax: 10_000,
    timeoutMs: 5000,
    unknownModels: "other",
    allowPaths: [],
    background: "hold",
    unpriced: "refuse",
    passesUncounted: false,
    reserveMoney: "learned",
    capOutput: false,
    readOnMax: 10,
    tell: () => {},
    ...options,
  });
}

/** A gateway with its store, its upstream and a key of `team-a`. */
export class Stage {
  static readonly MODEL = "gpt-4o";
  nowMs = 1_700_000_000_000;

  private constructor(
    readonly upstream: Upstream,
    readonly limiter: RateLimiter,
    readonly key: string,
    public gateway: Gateway,
  ) {}

  static async start(options: Partial<GatewayOptions> = {}): Promise<Stage> {
    const upstream = await Upstream.start();
    const clock = () => stage?.nowMs ?? 1_700_000_000_000;
    let stage: Stage | undefined;
    const limiter = await RateLimiter.open("memory:", { clock });
    await limiter.repository.limits.setSystem(["rpd:1000/day", "tpd:1000000/day"]);
    const { key } = await createKey(limiter.repository, "team-a", undefined);
    const gateway = await startGateway(limiter, upstream, options);
    stage = new Stage(upstream, limiter, key, gateway);
    return stage;
  }

  /** Starts another gateway in place of the one that runs. */
  async restart(options: Partial<GatewayOptions>): Promise<void> {
    await this.gateway.stop(Promise.resolve());
    this.gateway = await startGateway(this.limiter, this.upstream, options);
  }

  async stop(): Promise<void> {
    await this.gateway.stop(Promise.resolve());
    await this.limiter.close();
    await this.upstream.stop();
  }

  /** Sends a request with the key of `team-a`; a body is sent as JSON. */
  ask(path: string, body?: object, { headers = {}, ...more }: RequestInit = {}): Promise<Response> {
    return fetch(this.gateway.url + path, {
      method: body === undefined ? "GET" : "POST",
      headers: {
        authorization: `Bearer ${this.key}`,
        "content-type": "application/json",
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...more,
    });
  }

  /** Returns what was consumed of each limit. */
  async consumed(resource = Stage.MODEL, entityId = "team-a"): Promise<Record<string, number>> {
    const statuses = await this.limiter.status({ entityId, resource });
    return Object.fromEntries(
      statuses.map(({ limitName, limit, available }) => [limitName, limit.capacity - available]),
    );
  }

  /** Returns the value of a metric; 0 where it is absent. */
  async metric(line: RegExp): Promise<number> {
    const text = await (await fetch(`${this.gateway.url}/metrics`)).text();
    return Number(line.exec(text)?.[1] ?? 0);
  }
}
