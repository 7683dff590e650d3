/** The page of a load test and the JSON behind it, with the guards of the dashboard. */

import { failed, jsonAnswer, pageAnswer, safe } from "../../dashboard/answers.ts";
import { eventsResponse } from "../../dashboard/events-stream.ts";
import { failure, failureOf } from "../../dashboard/failure.ts";
import { refusedRequest } from "../../dashboard/guard.ts";
import { type Page, readPage } from "../../dashboard/page-file.ts";
import { systemTimer } from "../../domain/timer.ts";
import type { FetchHandler } from "../dashboard/node-server.ts";
import type { PageGuard } from "../dashboard/serve.ts";
import type { UiRun } from "./ui-run.ts";

/** Next to this file's folder in a build; in `dist` when this runs as source. */
const PLACES = ["../loadtest/page.html.gz", "../../../dist/loadtest/page.html.gz"];
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
      page ??= readPage("The page of load tests", PLACES, import.meta.url);
      return pageAnswer(page);
    } catch (error) {
      return failed(failureOf(error));
    }
  };
}

async function api(run: UiRun, request: Request, path: string): Promise<Response> {
  if (request.method === "GET" && path === "events") {
    const tellers = [async () => ["state", run.state()] as const];
    const options = { timer: systemTimer, signal: request.signal, onClose: () => undefined };
    return safe(eventsResponse(tellers, options));
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
