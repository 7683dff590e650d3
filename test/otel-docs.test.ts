/** The dashboards and runbooks name metrics, alarms and warnings that exist, and all of them. */

import { readFileSync } from "node:fs";
import { createNoopMeter, type Meter, type MetricOptions } from "@opentelemetry/api";
import { ALARM_RESOURCES } from "@zae-limiter/aws/template/alarms.ts";
import { RateLimiter } from "@zae-limiter/limiter/index.ts";
import { observe } from "@zae-limiter/limiter/otel/index.ts";
import { expect, it } from "vitest";

const read = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), "utf8");

/** The names of all metrics: as they are, and as the Prometheus exporter writes them. */
async function metricNames(): Promise<{ own: string[]; prometheus: Set<string> }> {
  const own: string[] = [];
  const prometheus = new Set<string>();
  const meter = new Proxy(createNoopMeter(), {
    get: (noop, method: keyof Meter) => (name: string, options: MetricOptions) => {
      own.push(name);
      const base = name.replaceAll(".", "_") + (options.unit === "s" ? "_seconds" : "");
      if (method === "createHistogram") prometheus.add(`${base}_bucket`);
      else prometheus.add(method === "createObservableCounter" ? `${base}_total` : base);
      return (noop[method] as (...given: unknown[]) => unknown)(name, options);
    },
  });
  const limiter = await RateLimiter.open("memory:");
  observe(limiter, { meter, tracer: false })();
  await limiter.close();
  return { own, prometheus };
}

/** Returns the names of metrics in a query; labels are in braces or after `by`. */
function metricsIn(expression: string): string[] {
  const bare = expression.replace(/\{[^}]*\}/g, "").replace(/\bby \([^)]*\)/g, "");
  return bare.match(/\b(?:zae_limiter|db_client)_\w+/g) ?? [];
}

it("the Grafana dashboard shows every metric, and none that does not exist", async () => {
  const { panels } = JSON.parse(read("docs/grafana/zae-limiter.json")) as {
    panels: { targets: { expr: string }[] }[];
  };
  const shown = panels.flatMap(({ targets }) => targets.flatMap(({ expr }) => metricsIn(expr)));
  const { prometheus } = await metricNames();
  expect([...new Set(shown)].sort()).toEqual([...prometheus].sort());
});

it("docs/operators/monitoring.md lists every metric, and its queries name none that does not exist", async () => {
  const page = read("docs/operators/monitoring.md");
  const { own, prometheus } = await metricNames();
  const listed = [...page.matchAll(/^\| `((?:zae_limiter|db)\.[\w.]+)` \|/gm)].map(
    ([, name]) => name,
  );
  expect(listed.sort()).toEqual([...own].sort());
  const alerts = page.split("## What to alert on")[1]?.split("\n## ")[0] ?? "";
  const asked = [...alerts.matchAll(/`([^`]*\b(?:rate|sum)\([^`]*|sum [^`]*)`/g)].flatMap(
    ([, query = ""]) => metricsIn(query),
  );
  expect(asked.length).toBeGreaterThan(5);
  expect(asked.filter((name) => !prometheus.has(name))).toEqual([]);
});

it("every alarm of the stack has a runbook", () => {
  const suffixes = Object.values(ALARM_RESOURCES)
    .filter(({ Type }) => Type === "AWS::CloudWatch::Alarm")
    .map(({ Properties }) => /[a-z-]+$/.exec(nameOf(Properties))?.[0].replace(/^-/, ""));
  expect(headingsOf("docs/operators/runbooks/alarms.md").sort()).toEqual(suffixes.sort());
});

it("every warning has a runbook", () => {
  const events = read("docs/reference/events.md");
  const kinds = [...events.matchAll(/^\| `(\w+)` \| .*$/gm)].map(([, kind]) => kind as string);
  const headings = headingsOf("docs/operators/runbooks/warnings.md");
  const warnings = kinds.slice(kinds.indexOf("restore_failed"));
  expect(warnings.length).toBeGreaterThan(5);
  expect(headings).toEqual(expect.arrayContaining(warnings));
});

function nameOf(properties: unknown): string {
  const { AlarmName } = properties as { AlarmName: unknown };
  return JSON.stringify(AlarmName).replace(/[^\w-]+$/, "");
}

function headingsOf(path: string): string[] {
  const page = read(path);
  const sections = page.split("\n## ").slice(1);
  for (const section of sections) {
    expect(section).toMatch(/\*\*Means\.\*\*.*\*\*Look\.\*\*.*\*\*Do\.\*\*/s);
  }
  return sections.map((section) => section.split("\n")[0] as string);
}
