/** The page of a load test and the JSON behind it, with the guards of the dashboard. */

import { failed, jsonAnswer, pageAnswer, safe } from "@zae-limiter/dashboard/server/answers.ts";
import { eventsResponse } from "@zae-limiter/dashboard/server/events-stream.ts";
import { failure, failureOf } from "@zae-limiter/dashboard/server/failure.ts";
import { refusedRequest } from "@zae-limiter/dashboard/server/guard.ts";
import type { FetchHandler } from "@zae-limiter/dashboard/server/node-server.ts";
import { type Page, readPage } from "@zae-limiter/dashboard/server/page-file.ts";
import type { PageGuard } from "@zae-limiter/dashboard/server/serve.ts";
import { systemTimer } from "@zae-limiter/limiter/base/time.ts";
import type { UiRun } from "./ui-run.ts";

const BODY_MAX = 10_000;
export function uiHandler(run: UiRun, { isKnownToken, hosts }: PageGuard): FetchHandler {
  let page: Page | undefined;
  return async (request) => {
    try {
      const refused = refusedRequest(request, { hosts, readOnly: false });
      if (refused !== undefined) return failed(refused);
      if (!isKnownToken(request)) {
        return failed(failure(401, "unauthorized", "This request is not authorized"));
      }
      const { pathname } = new URL(request.url);
      if (pathname.startsWith("/api/")) return await api(run, request, pathname.slice(5));
      page ??= readPage("The page of load tests", "loadtest", import.meta.url);
      return pageAnswer(page);
    } catch (error) {
      return failed(failureOf(error));
    }
  };
}

async function api(run: UiRun, request: Request, path: string): Promise<Response> {
  if (request.method === "GET" && path === "events") {
    const feeds = [async () => ["state", run.state()] as const];
    const options = { timer: systemTimer, signal: request.signal, onClose: () => undefined };
    return safe(eventsResponse(feeds, options));
  }
  if (request.method === "POST" && (path === "start" || path === "change" || path === "stop")) {
    const body = await bodyOf(request);
    if (path === "stop") run.stop();
    else run[path](body);
    return jsonAnswer(200, run.state());
  }
  return failed(failure(404, "not_found", `There is no "${path}" here`));
}

async function bodyOf(request: Request): Promise<unknown> {
  const text = await request.text();
  try {
    return text.length > BODY_MAX ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}
