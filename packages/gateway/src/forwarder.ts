/** Sends requests to one upstream. */

import { type Agent, type ClientRequest, request as requestHttp } from "node:http";
import { type RequestOptions, request as requestHttps } from "node:https";
import { isIP } from "node:net";
import { upstreamHeaders } from "./headers.ts";
import { agentFor } from "./idle-connections.ts";
import type { UpstreamSpec } from "./upstreams.ts";

/** A request of a client as far as it is forwarded. */
export interface Forwarding {
  readonly method: string;
  /** With the query, as the client has sent it. */
  readonly path: string;
  readonly rawHeaders: readonly string[];
  readonly key: string;
  readonly body: Buffer;
}

/** Methods whose requests have a body only where they announce one. */
const BODILESS: ReadonlySet<string> = new Set(["GET", "HEAD", "DELETE", "OPTIONS", "TRACE"]);

export class Forwarder {
  readonly #spec: UpstreamSpec;
  readonly #agent: Agent;
  readonly #request: typeof requestHttp;
  /** What comes before the path of a client. */
  readonly #base: string;
  readonly #hostname: string;
  readonly #servername: string;

  constructor(spec: UpstreamSpec) {
    const { protocol, pathname, hostname } = spec.url;
    this.#spec = spec;
    this.#agent = agentFor(protocol);
    this.#request = protocol === "https:" ? requestHttps : requestHttp;
    this.#base = pathname.endsWith("/") ? pathname.slice(0, -1) : pathname;
    // A URL has an address of IPv6 in brackets, and a socket wants it without.
    this.#hostname = hostname.replace(/^\[(.*)\]$/, "$1");
    // Set here, so that node:http need not find it out for each request.
    this.#servername = isIP(this.#hostname) === 0 ? this.#hostname : "";
  }

  /** Sends a request; the caller listens to its events. */
  send({ method, path, rawHeaders, key, body }: Forwarding): ClientRequest {
    const bytes = body.length === 0 && BODILESS.has(method) ? undefined : body.length;
    const options: RequestOptions = {
      hostname: this.#hostname,
      port: this.#spec.url.port,
      servername: this.#servername,
      method,
      // The version is part of the base URL of clients and of upstreams.
      path: this.#base + (path.startsWith("/v1/") ? path.slice("/v1".length) : path),
      headers: upstreamHeaders(rawHeaders, this.#spec, key, bytes),
      agent: this.#agent,
    };
    const forwarded = this.#request(options);
    forwarded.end(body);
    return forwarded;
  }

  close(): void {
    this.#agent.destroy();
  }
}
