/** Gateways in front of the double of a provider. */

import { Gateway, type GatewayOptions } from "@zae-limiter/gateway/gateway.ts";
import { checkUpstream, type UpstreamSpec } from "@zae-limiter/gateway/upstreams.ts";
import type { RateLimiter } from "@zae-limiter/limiter/index.ts";
import type { Upstream } from "@zae-limiter/test-support/llm/upstream.ts";

/** The provider's own keys, which no client may see. */
export const KEYS = { OPENAI_API_KEY: "sk-real-provider-key", ANTHROPIC_API_KEY: "sk-ant-real" };

/** Names the double as an upstream. */
export function upstreamAt(upstream: Upstream, more: object = {}, isOpen = false): UpstreamSpec {
  return checkUpstream({ url: `${upstream.url}/v1`, ...more }, KEYS, isOpen);
}

/** Starts a gateway on a free port. */
export function startGateway(
  limiter: RateLimiter,
  upstream: Upstream,
  options: Partial<GatewayOptions> = {},
): Promise<Gateway> {
  return Gateway.start({
    limiter,
    upstreams: [upstreamAt(upstream)],
    host: "127.0.0.1",
    port: 0,
    isOpen: false,
    maxWaitSeconds: 0,
    bodyBytesMax: 10_000,
    timeoutMs: 5000,
    tell: () => {},
    ...options,
  });
}
