/** The dashboard: one page and the JSON behind it, as a fetch handler. */

import { subscribe } from "@zae-limiter/limiter/acquire/announcer.ts";
import type { LimiterEvent } from "@zae-limiter/limiter/acquire/events.ts";
import type { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import type { Clock } from "@zae-limiter/limiter/base/time.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { checkDashboard, type DashboardOptions } from "./options.ts";
import { type Asked, CHANGE_ROUTES, READ_ROUTES } from "./routes.ts";
import { failed, jsonAnswer, pageAnswer, safe } from "./server/answers.ts";
import { eventsResponse, type Feed } from "./server/events-stream.ts";
import { failure, failureOf, RequestFailure } from "./server/failure.ts";
import { refusedRequest } from "./server/guard.ts";
import { type Page, readPage } from "./server/page-file.ts";
import { Survey } from "./survey.ts";
import type { LiveJson, RefusalJson } from "./wire.ts";

const API = "/api/";
const BODY_MAX = 100_000;
/** Namespaces that are kept open; more are opened again when they are asked for. */
const SCOPES_MAX = 50;

/**
 * Returns a fetch handler that serves the dashboard of a repository: one page, and the JSON behind
 * it at `api/…` below the page. Mount it at any path that ends with a slash.
 *
 * @example
 * ```ts
 * import { Repository } from 'zae-limiter';
 * import { dashboard } from 'zae-limiter/dashboard';
 * const repo = await Repository.open('memory:');
 * const handler = dashboard(repo, {
 *   authorize: (request) => request.headers.get('authorization') === 'Bearer secret' && 'ops',
 * });
 * const refused = await handler(new Request('http://localhost/limits/api/session'));
 * const session = await handler(
 *   new Request('http://localhost/limits/api/session', {
 *     headers: { authorization: 'Bearer secret' },
 *   }),
 * );
 * console.log(refused.status, session.status); // 401 200
 * await repo.close();
 * ```
 */
export function dashboard(
  repository: Repository,
  options: DashboardOptions,
): (request: Request) => Promise<Response> {
  checkDashboard(repository, options);
  const served = new Dashboard(repository, options);
  return (request) => served.answer(request);
}

interface Scope {
  readonly repository: Repository;
  readonly survey: Survey;
}

class Dashboard {
  readonly #options: DashboardOptions;
  readonly #repository: Repository;
  readonly #live: LiveCalls | undefined;
  readonly #scopes = new Map<string, Scope>();
  readonly #hosts: readonly string[] | undefined;
  #page: Page | undefined;

  constructor(repository: Repository, options: DashboardOptions) {
    const { limiter } = options;
    this.#options = options;
    this.#repository = repository;
    this.#hosts = options.hosts?.map((host) => host.toLowerCase());
    this.#live = limiter && new LiveCalls(limiter, repository[INTERNALS].clock);
  }

  async answer(request: Request): Promise<Response> {
    try {
      const { readOnly = false } = this.#options;
      const refused = refusedRequest(request, { hosts: this.#hosts, readOnly });
      if (refused !== undefined) return failed(refused);
      const user = await this.#options.authorize(request);
      if (user !== true && (typeof user !== "string" || user === "")) {
        return failed(failure(401, "unauthorized", "This request is not authorized"));
      }
      const { pathname } = new URL(request.url);
      const at = pathname.lastIndexOf(API);
      if (at === -1) return this.#servePage(request);
      const path = pathname.slice(at + API.length);
      return await this.#serveApi(request, path, user === true ? undefined : user);
    } catch (error) {
      const shown = failureOf(error);
      if (shown.error === "internal") process.emitWarning(error as Error);
      return failed(shown);
    }
  }

  #servePage(request: Request): Response {
    if (request.method !== "GET" && request.method !== "HEAD") {
      return failed(failure(404, "not_found", "Only paths below api take changes"));
    }
    this.#page ??= readPage("The dashboard's page", "dashboard", import.meta.url);
    return pageAnswer(this.#page, { isHead: request.method === "HEAD" });
  }

  async #serveApi(
    request: Request,
    path: string,
    principal: string | undefined,
  ): Promise<Response> {
    const query = new URL(request.url).searchParams;
    const isChange = request.method === "POST";
    const route = (isChange ? CHANGE_ROUTES : READ_ROUTES).get(path);
    const isEvents = path === "events" && !isChange;
    if (route === undefined && !isEvents) {
      return failed(failure(404, "not_found", `There is no "${path}" here`));
    }
    const scope = await this.#scope(query.get("ns") ?? this.#repository.namespaceName);
    if (route === undefined) return this.#events(scope, request.signal);
    const asked: Asked = {
      ...scope,
      query,
      body: isChange ? await bodyOf(request) : undefined,
      principal,
      readOnly: this.#options.readOnly ?? false,
      live: this.#live !== undefined,
    };
    const answer = await route(asked);
    return answer instanceof Response ? safe(answer) : jsonAnswer(200, answer);
  }

  #events({ repository, survey }: Scope, signal: AbortSignal): Response {
    const live = this.#live;
    const leave = live?.watch();
    const feeds: Feed[] = [async () => ["overview", await survey.overview()]];
    if (live !== undefined) feeds.push(async () => ["live", live.state]);
    const { timer } = repository[INTERNALS];
    return safe(eventsResponse(feeds, { timer, signal, onClose: () => leave?.() }));
  }

  /** Returns the repository of a namespace; opening it reads whether the namespace is active. */
  async #scope(name: string): Promise<Scope> {
    const known = this.#scopes.get(name);
    const isOwn = name === this.#repository.namespaceName;
    const repository = isOwn ? this.#repository : await this.#repository.namespace(name);
    if (known?.repository.namespaceId === repository.namespaceId) return known;
    const scope = { repository, survey: new Survey(repository) };
    if (this.#scopes.size >= SCOPES_MAX) this.#scopes.clear();
    this.#scopes.set(name, scope);
    return scope;
  }
}

async function bodyOf(request: Request): Promise<unknown> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of request.body ?? []) {
    text += decoder.decode(chunk as Uint8Array, { stream: true });
    if (text.length <= BODY_MAX) continue;
    throw new RequestFailure(failure(413, "too_large", `The body is longer than ${BODY_MAX}`));
  }
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new RequestFailure(failure(400, "json", "The body is not JSON"));
  }
}

const REFUSALS_MAX = 30;

/** Counts the calls of a limiter while a page is open, and keeps its last refusals. */
class LiveCalls {
  readonly #limiter: RateLimiter;
  readonly #clock: Clock;
  readonly #refusals: RefusalJson[] = [];
  #granted = 0;
  #refused = 0;
  #degraded = 0;
  #watchers = 0;
  #stop: (() => void) | undefined;

  constructor(limiter: RateLimiter, clock: Clock) {
    this.#limiter = limiter;
    this.#clock = clock;
  }

  /** Listens until the result is called as often as this was. */
  watch(): () => void {
    this.#watchers += 1;
    this.#stop ??= subscribe(this.#limiter, (event) => this.#count(event));
    return () => {
      this.#watchers -= 1;
      if (this.#watchers > 0) return;
      this.#stop?.();
      this.#stop = undefined;
    };
  }

  get state(): LiveJson {
    return {
      atMs: this.#clock(),
      granted: this.#granted,
      refused: this.#refused,
      degraded: this.#degraded,
      refusals: [...this.#refusals],
    };
  }

  #count(event: LimiterEvent): void {
    if (event.type === "acquired") this.#granted += 1;
    else if (event.type === "degraded") this.#degraded += 1;
    else if (event.type === "rejected") {
      this.#refused += 1;
      this.#refusals.unshift(refusalOf(event, this.#clock()));
      this.#refusals.length = Math.min(this.#refusals.length, REFUSALS_MAX);
    }
  }
}

function refusalOf(event: LimiterEvent & { type: "rejected" }, atMs: number): RefusalJson {
  const { entityId, resource, refusedBy, retryAfterSeconds: seconds } = event;
  return {
    atMs,
    entityId,
    resource,
    limitName: refusedBy.limitName,
    ancestorId: refusedBy.level === 0 ? null : refusedBy.entityId,
    retryAfterSeconds: Number.isFinite(seconds) ? seconds : null,
  };
}
