/** Which path leads to what. A path is what follows `/api/`, so that the page can be anywhere. */

import { CLIENT_VERSION } from "@zae-limiter/limiter/domain/version.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { alertsOf } from "./alerts.ts";
import { closedPeriods } from "./closed-periods.ts";
import { entityDetail, listChildren, listEntities } from "./entities.ts";
import { checkChange } from "./place.ts";
import { previewChange } from "./preview.ts";
import {
  allLimits,
  allNamespaces,
  auditTrail,
  changeNamespace,
  childrenLimits,
  entityLimits,
  saveLimits,
} from "./records.ts";
import { failure, RequestFailure } from "./server/failure.ts";
import type { Survey } from "./survey.ts";
import { csvOf, type UsageOptions, usageReport, usageRows } from "./usage-report.ts";
import type { SessionJson } from "./wire.ts";

/** One request that passed the guard. */
export interface Asked {
  readonly repository: Repository;
  readonly survey: Survey;
  readonly query: URLSearchParams;
  readonly body: unknown;
  readonly principal: string | undefined;
  readonly readOnly: boolean;
  readonly live: boolean;
}

/** A route answers with JSON, or with a response of its own. */
export type Route = (asked: Asked) => Promise<unknown>;

export const READ_ROUTES: ReadonlyMap<string, Route> = new Map<string, Route>([
  ["session", session],
  ["overview", ({ survey }) => survey.overview()],
  [
    "entities",
    ({ repository, query }) =>
      listEntities(repository, {
        prefix: query.get("prefix") ?? "",
        cursor: query.get("cursor") ?? undefined,
        roots: query.get("roots") === "1",
        ...(query.has("limit") ? { limit: Number(query.get("limit")) } : {}),
      }),
  ],
  ["children", ({ repository, query }) => listChildren(repository, query.get("id") ?? "")],
  [
    "entity",
    ({ repository, query, live }) => {
      // Without a limiter in this process, other processes are the ones that change limits.
      if (!live) repository.limits.invalidateCache();
      return entityDetail(repository, query.get("id") ?? "");
    },
  ],
  ["limits", ({ repository }) => allLimits(repository)],
  [
    "entity-limits",
    ({ repository, query }) =>
      entityLimits(
        repository,
        query.get("resource") ?? undefined,
        query.get("cursor") ?? undefined,
      ),
  ],
  [
    "children-limits",
    ({ repository, query }) =>
      childrenLimits(
        repository,
        query.get("resource") ?? undefined,
        query.get("cursor") ?? undefined,
      ),
  ],
  [
    "usage",
    async (asked) => {
      const groupBy = asked.query.get("group") === "entity" ? "entity" : "resource";
      return usageReport(asked.repository, await rowsOf(asked), groupBy);
    },
  ],
  ["usage.csv", usageFile],
  ["alerts", ({ repository, query }) => alertsOf(repository, query.get("entity") || undefined)],
  [
    "periods",
    ({ repository, query }) =>
      closedPeriods(
        repository,
        query.get("entity") || undefined,
        query.get("resource") || undefined,
      ),
  ],
  [
    "audit",
    ({ repository, query }) =>
      auditTrail(repository, {
        subject: query.get("subject") ?? undefined,
        after: query.get("after") ?? undefined,
      }),
  ],
  ["namespaces", ({ repository }) => allNamespaces(repository)],
]);

export const CHANGE_ROUTES: ReadonlyMap<string, Route> = new Map<string, Route>([
  ["preview", ({ repository, body }) => previewChange(repository, checkChange(body))],
  [
    "limits",
    async ({ repository, survey, body, principal }) => {
      const saved = await saveLimits(repository, checkChange(body), principal);
      survey.expire();
      return saved;
    },
  ],
  [
    "namespaces",
    async ({ repository, body }) => {
      await changeNamespace(repository, body);
      return allNamespaces(repository);
    },
  ],
]);

async function session({ repository, principal, readOnly, live }: Asked): Promise<SessionJson> {
  const [version, namespaces] = await Promise.all([
    repository.version(),
    repository.namespaces.list(),
  ]);
  return {
    version: CLIENT_VERSION,
    store: repository[INTERNALS].storeName,
    schemaVersion: version?.schemaVersion ?? null,
    lambdaVersion: version?.aggregatorVersion ?? version?.lambdaVersion ?? null,
    namespace: repository.namespaceName,
    namespaces: namespaces.map(({ name }) => name),
    readOnly,
    principal: principal ?? null,
    live,
  };
}

async function usageFile(asked: Asked): Promise<Response> {
  const { snapshots } = await rowsOf(asked);
  return new Response(csvOf(snapshots), {
    headers: {
      "content-type": "text/csv; charset=utf-8",
      "content-disposition": 'attachment; filename="usage.csv"',
    },
  });
}

function rowsOf({ repository, query }: Asked) {
  return usageRows(repository, usageOptions(query));
}

function usageOptions(query: URLSearchParams): UsageOptions {
  const window = query.get("window") ?? "hourly";
  if (window !== "hourly" && window !== "daily" && window !== "monthly") {
    throw new RequestFailure(
      failure(400, "window", `Expected hourly, daily or monthly, got "${window}"`),
    );
  }
  const given = (name: string) => query.get(name) || undefined;
  return {
    entityId: given("entity"),
    resource: given("resource"),
    window,
    start: given("start"),
    end: given("end"),
  };
}
