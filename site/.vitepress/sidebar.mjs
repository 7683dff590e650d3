/** The sections of the site, by reader. The build fails when a page is in none of them. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { content, titleOf } from "../pages.mjs";

const GETTING_STARTED = [
  page("What it is", "getting-started/overview"),
  page("Installing", "getting-started/install"),
  page("Quick start", "getting-started/quick-start"),
  page("A local DynamoDB", "getting-started/local"),
  page("Examples", "getting-started/examples"),
  page("Coming from the Python library", "python"),
];
const GUIDE = [
  group("Concepts", [
    page("The token bucket", "guide/token-bucket"),
    page("Limits and levels", "guide/limits"),
    page("Quotas", "guide/quotas"),
    page("Hierarchy", "guide/hierarchy"),
    page("A limit per team", "guide/per-team"),
    page("Budgets in money", "guide/budgets"),
    page("Prices of models", "guide/prices"),
    page("Alerts", "guide/alerts"),
    page("Namespaces", "guide/namespaces"),
  ]),
  group("Acquiring", [
    page("Acquire, refuse, look", "guide/acquiring"),
    page("Leases and streaming", "guide/leases"),
    page("Waiting", "guide/waiting"),
    page("Calls at once", "guide/concurrency"),
    page("Outages", "guide/outages"),
  ]),
  group("Language models", [
    page("Calls to models", "guide/llm"),
    page("The gateway", "guide/gateway"),
  ]),
  group("HTTP", [
    page("Servers", "guide/http"),
    page("Recipes", "guide/http-recipes"),
    page("Login attempts", "guide/login"),
  ]),
  group("Managing", [
    page("Entities and balances", "guide/entities"),
    page("Switches and soft limits", "guide/switches"),
    page("Usage", "guide/usage"),
  ]),
  group("Your own code", [
    page("Choosing a store", "guide/stores"),
    page("Redis and Valkey", "guide/redis"),
    page("Moving to another store", "guide/moving-stores"),
    page("Testing without waiting", "guide/testing"),
    page("A store of your own", "guide/backends"),
  ]),
];
const OPERATORS = [
  group("Deploying", [
    page("Deploy", "operators/deploy"),
    page("The gateway in a container", "operators/container"),
    page("Production checklist", "operators/production"),
    page("CloudFormation", "operators/cloudformation"),
    page("Migrations", "operators/migrations"),
  ]),
  group("Security", [
    page("Permissions", "operators/iam"),
    page("Threat model", "operators/security"),
    page("Several regions", "operators/multi-region"),
    page("Auditing", "operators/auditing"),
  ]),
  group("Running", [
    page("Monitoring", "operators/monitoring"),
    page("Dashboard", "operators/dashboard"),
    page("Runbooks: alarms", "operators/runbooks/alarms"),
    page("Runbooks: warnings", "operators/runbooks/warnings"),
  ]),
  group("Performance", [
    page("Cost and hot partitions", "operators/performance"),
    page("Scale", "operators/scale"),
    page("Benchmarks", "benchmarks"),
    page("Load tests", "operators/loadtest"),
  ]),
];
const REFERENCE = [
  page("Options and defaults", "reference/options"),
  page("Command line", "reference/cli"),
  page("Errors", "reference/errors"),
  page("Events and warnings", "reference/events"),
  page("Limits file", "reference/limits-file"),
  page("DynamoDB schema", "reference/dynamodb-schema"),
  page("Glossary", "glossary"),
];
const CONTRIBUTING = [
  page("Contributing", "contributing/index"),
  page("Architecture", "contributing/architecture"),
  page("Testing", "contributing/testing"),
  page("The state of the house", "contributing/house"),
  page("The simulator", "contributing/simulator"),
  page("Behaviour", "behaviour"),
  page("Reporting a weakness", "contributing/reporting"),
  page("Changelog", "contributing/changelog"),
];

export const nav = [
  { text: "Getting started", link: "/getting-started/overview", activeMatch: "^/getting-started/" },
  { text: "Guide", link: "/guide/token-bucket", activeMatch: "^/guide/" },
  { text: "Operators", link: "/operators/deploy", activeMatch: "^/operators/" },
  { text: "Reference", link: "/reference/options", activeMatch: "^/reference/" },
  { text: "Contributing", link: "/contributing/", activeMatch: "^/(contributing|adr)/" },
];

/** Returns the sidebar of each section by the paths of its pages; `api` is what typedoc wrote. */
export function sidebars(api) {
  const decisions = { ...page("Decision records", "adr/index"), collapsed: true, items: records() };
  const sections = [
    section("Getting started", GETTING_STARTED),
    section("Guide", GUIDE),
    section("Operators", OPERATORS),
    section("Reference", [...REFERENCE, { text: "API", link: "/reference/api/", items: api }]),
    section("Contributing", [...CONTRIBUTING, decisions]),
  ];
  checkComplete(sections);
  return Object.fromEntries(sections.flatMap((one) => pathsOf(one).map((path) => [path, [one]])));
}

/** Returns the folders of a section's pages, and its pages that are in none. */
function pathsOf(one) {
  return [...new Set(linksOf([one]).map((link) => link.replace(/^(\/[^/]+\/).*/, "$1")))].filter(
    (path) => path !== "",
  );
}

function page(text, path) {
  return { text, link: `/${path}`.replace(/\/index$/, "/") };
}

function group(text, items) {
  return { text, items };
}

function section(text, items) {
  return { text, collapsed: false, items };
}

function records() {
  const names = readdirSync(join(content, "adr")).filter((name) => /^\d{3}-.*\.md$/.test(name));
  return names.sort().map((name) => {
    const title = titleOf(readFileSync(join(content, "adr", name), "utf8"));
    return page(`${name.slice(0, 3)} ${title}`, `adr/${name.replace(/\.md$/, "")}`);
  });
}

/** Throws when a page is in no section, or a link of a section leads nowhere. */
function checkComplete(sections) {
  const links = new Set(linksOf(sections).filter((link) => link !== ""));
  const pages = new Set(
    readdirSync(content, { recursive: true })
      .map((path) => String(path).replaceAll("\\", "/"))
      .filter((path) => path.endsWith(".md"))
      .map((path) => `/${path.replace(/\.md$/, "")}`.replace(/\/index$/, "/")),
  );
  const isListed = (path) => path === "/" || path.startsWith("/reference/api/") || links.has(path);
  const lost = [...pages].filter((path) => !isListed(path));
  if (lost.length > 0) throw new Error(`in no section of sidebar.mjs: ${lost.join(", ")}`);
  const dead = [...links].filter((link) => !pages.has(link.replace(/\.md$/, "")));
  if (dead.length > 0) throw new Error(`sidebar.mjs leads to no page: ${dead.join(", ")}`);
}

function linksOf(items) {
  return items.flatMap((item) => [item.link ?? "", ...linksOf(item.items ?? [])]);
}
