/** Serves the dashboard to one person: a token in the printed address, then a cookie. */

import { userInfo } from "node:os";
import { dashboard } from "../../dashboard/dashboard.ts";
import { forPerson, hasToken, tokenLogin } from "../../dashboard/token-session.ts";
import { defined } from "../../domain/defined.ts";
import { isLoopback } from "../../domain/loopback.ts";
import { randomBytes, systemRandom } from "../../domain/random.ts";
import type { RateLimiter } from "../../limiter/rate-limiter.ts";
import type { Repository } from "../../repository/repository.ts";
import { CommandFailure, UsageError } from "../command.ts";
import { type FetchHandler, listen, type RunningServer } from "./node-server.ts";

const TOKEN_BYTES = 24;
const TOKEN_MIN = 16;

export interface ServeOptions {
  readonly host: string;
  readonly port: number;
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
  const { host } = options;
  const isLocal = isLoopback(`http://${inUrl(host)}`);
  const token = tokenOf(options.token, isLocal);
  const server = await listen({ host, port: options.port }, (port) => {
    const cookie = `zae-limiter-${port}`;
    // A public server has names that this process does not know; there the cookie, which belongs
    // to one name, is what protects it.
    const hosts = isLocal ? localNames(host, port) : undefined;
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
    throw new CommandFailure(`Cannot listen on ${inUrl(host)}:${options.port}: ${cause.code}`, 1, {
      cause,
    });
  });
  return { ...server, url: `http://${inUrl(host)}:${server.port}/?token=${token}` };
}

/** The given token, or a random one for a server that only this machine reaches. */
function tokenOf(given: string | undefined, isLocal: boolean): string {
  if (given === undefined) {
    if (isLocal) return Buffer.from(randomBytes(systemRandom, TOKEN_BYTES)).toString("base64url");
    throw new UsageError(
      "An address that other machines reach needs --token: pass a secret of at least 16 characters",
    );
  }
  if (/^[\w-]+$/.test(given) && given.length >= TOKEN_MIN) return given;
  throw new UsageError("Expected --token to have at least 16 letters, digits, hyphens and _");
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
