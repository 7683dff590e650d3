/** Serves the dashboard to one person: a token in the printed address, then a cookie. */

import { userInfo } from "node:os";
import type { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { defined } from "@zae-limiter/limiter/base/defined.ts";
import { isLoopback } from "@zae-limiter/limiter/base/loopback.ts";
import { randomBytes, systemRandom } from "@zae-limiter/limiter/base/random.ts";
import { InfrastructureError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { dashboard } from "../dashboard.ts";
import { type FetchHandler, listen, type RunningServer } from "./node-server.ts";
import { forPerson, hasToken, tokenLogin } from "./token-session.ts";

const TOKEN_BYTES = 24;

export interface ServeOptions {
  readonly host: string;
  readonly port: number;
  /** The secret in the address; a random one when absent. */
  readonly token?: string | undefined;
  readonly readOnly: boolean;
  readonly principal?: string | undefined;
  readonly limiter?: RateLimiter;
}

export interface Served extends RunningServer {
  /** With the token. */
  readonly url: string;
}

export async function serveDashboard(
  repository: Repository,
  options: ServeOptions,
): Promise<Served> {
  const { readOnly, limiter } = options;
  const principal = options.principal ?? userName();
  return servePage(options, ({ isKnownToken, hosts }) =>
    dashboard(repository, {
      readOnly,
      authorize: (request) => isKnownToken(request) && principal,
      ...defined({ limiter, hosts }),
    }),
  );
}

export interface PageGuard {
  readonly isKnownToken: (request: Request) => boolean;
  /** `undefined`: any name leads here. */
  readonly hosts: readonly string[] | undefined;
}

/** Serves a page to one person; the handler gets what has passed the login. */
export async function servePage(
  options: Pick<ServeOptions, "host" | "port" | "token">,
  handlerOf: (guard: PageGuard) => FetchHandler,
): Promise<Served> {
  const { host, token = randomToken() } = options;
  const server = await listen({ host, port: options.port }, (port) => {
    const cookie = `zae-limiter-${port}`;
    // A public server has names that this process does not know; there the cookie, which belongs
    // to one name, is what protects it.
    const hosts = isLoopback(`http://${inUrl(host)}`) ? localNames(host, port) : undefined;
    const handler = handlerOf({
      isKnownToken: (request) => hasToken(request, token, cookie),
      hosts,
    });
    return async (request) => {
      const isKnown = hosts?.includes(request.headers.get("host") ?? "") ?? true;
      const login = isKnown ? tokenLogin(request, token, cookie) : undefined;
      return login ?? forPerson(request, await handler(request));
    };
  }).catch((cause: NodeJS.ErrnoException) => {
    const why =
      cause.code === "EADDRINUSE"
        ? "another process uses this port. Choose another with --port, or 0 for any that is free"
        : cause.code;
    const reason = `Cannot listen on ${inUrl(host)}:${options.port}: ${why}`;
    throw new InfrastructureError(reason, { cause });
  });
  return { ...server, url: `http://${inUrl(host)}:${server.port}/?token=${token}` };
}

function randomToken(): string {
  return Buffer.from(randomBytes(systemRandom, TOKEN_BYTES)).toString("base64url");
}

function localNames(host: string, port: number): string[] {
  return ["127.0.0.1", "localhost", "[::1]", inUrl(host)].map((name) => `${name}:${port}`);
}

function inUrl(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}

function userName(): string {
  try {
    return userInfo().username || "dashboard";
  } catch {
    // A user without an entry in the system's list has no name.
    return "dashboard";
  }
}
