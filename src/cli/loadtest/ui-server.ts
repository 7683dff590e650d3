/** The page of a load test and the JSON behind it, with the guards of the dashboard. */

import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { eventsResponse } from "../../dashboard/events-stream.ts";
import { type Failure, failure, failureOf } from "../../dashboard/failure.ts";
import { refusedRequest } from "../../dashboard/guard.ts";
import { policyOf } from "../../dashboard/page-file.ts";
import { InfrastructureError } from "../../domain/errors.ts";
import { systemTimer } from "../../domain/timer.ts";
import type { FetchHandler } from "../dashboard/node-server.ts";
import type { PageGuard } from "../dashboard/serve.ts";
import type { UiRun } from "./ui-run.ts";

/** Next to this file's folder in a build; in `dist` when this runs as source. */
const PLACES = ["../loadtest/page.html.gz", "../../../dist/loadtest/page.html.gz"];
const BODY_MAX = 10_000;
const SAFE_HEADERS = {
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};

/** Returns a handler for `servePage`. */
export function uiHandler(run: UiRun, { isKnownToken, hosts }: PageGuard): FetchHandler {
  let page: ReturnType<typeof readUiPage> | undefined;
  return async (request) => {
    try {
      const refused = refusedRequest(request, { hosts, readOnly: false });
      if (refused !== undefined) return failed(refused);
      if (!isKnownToken(request)) {
        return failed(failure(401, "unauthorized", "This request is not authorized"));
      }
      const { pathname } = new URL(request.url);
      if (pathname.startsWith("/api/")) return await api(run, request, pathname.slice(5));
      page ??= readUiPage();
      return new Response(page.html, { headers: page.headers });
    } catch (error) {
      return failed(failureOf(error));
    }
  };
}

async function api(run: UiRun, request: Request, path: string): Promise<Response> {
  if (request.method === "GET" && path === "events") {
    const tellers = [async () => ["state", run.state()] as const];
    const options = { timer: systemTimer, signal: request.signal, onClose: () => undefined };
    const response = eventsResponse(tellers, options);
    for (const [name, value] of Object.entries(SAFE_HEADERS)) response.headers.set(name, value);
    return response;
  }
  if (request.method === "POST" && (path === "start" || path === "change" || path === "stop")) {
    const body = await bodyOf(request);
    if (path === "stop") run.stop();
    else run[path](body);
    return json(200, run.state());
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

function failed({ status, ...shown }: Failure): Response {
  return json(status, shown);
}

function json(status: number, value: unknown): Response {
  const headers = { ...SAFE_HEADERS, "content-type": "application/json" };
  return new Response(JSON.stringify(value), { status, headers });
}

function readUiPage() {
  const path = PLACES.map((place) => fileURLToPath(new URL(place, import.meta.url))).find(
    existsSync,
  );
  if (path === undefined) {
    throw new InfrastructureError(
      "The page of load tests is not in this installation: install zae-limiter again, or run npm " +
        "run build in a checkout of it",
    );
  }
  const html = gunzipSync(readFileSync(path)).toString("utf8");
  const headers = {
    ...SAFE_HEADERS,
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": policyOf(html),
  };
  return { html, headers };
}
