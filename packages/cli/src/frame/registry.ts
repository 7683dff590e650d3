/** Every command by its first word. The module of a command is loaded when it is used. */

import type { Group, Leaf } from "./command.ts";

export interface Entry {
  readonly name: string;
  readonly summary: string;
  /** The heading the help lists it under. */
  readonly heading: string;
  /** Set for a short form: the group whose command it is. Help and completion do not offer it. */
  readonly shortFor?: string;
  readonly load: () => Promise<Group | Leaf>;
}

/** A command with its arguments, options and code. */
export interface Branch {
  readonly entry: Entry;
  readonly node: Group | Leaf;
}

/** Loads every command, for completion and the reference. */
export async function loadTree(): Promise<readonly Branch[]> {
  return Promise.all(REGISTRY.map(async (entry) => ({ entry, node: await entry.load() })));
}

/** The commands in the order of the help: a name, the heading it is under, and a summary. */
const COMMANDS = [
  ["acquire", "Acting:", "consumes from the limits of an entity"],
  ["peek", "Acting:", "shows what is left, and consumes nothing"],
  ["watch", "Acting:", "shows what is left, live"],
  ["run", "Acting:", "consumes, runs a command, refunds if it fails"],
  ["entity", "Limits:", "entities and limits of their own"],
  ["resource", "Limits:", "default limits per resource"],
  ["system", "Limits:", "default limits of the namespace"],
  ["limits", "Limits:", "limits declared in a file"],
  ["prices", "Limits:", "what models cost, for limits in money"],
  ["alerts", "Limits:", "percentages of quotas that were used, and their webhooks"],
  ["alerts webhook", "Limits:", "addresses that alerts are posted to"],
  ["namespace", "Records:", "isolated sets of entities and limits in one store"],
  ["audit", "Records:", "the log of changes and their principals"],
  ["usage", "Records:", "what was consumed, by hour, day and month"],
  ["aggregate", "Records:", "counts usage from the stream of a table, until it is ended"],
  ["gateway", "Acting:", "a proxy that limits calls to language models"],
  ["gateway key", "Acting:", "keys of clients of a gateway"],
  ["dashboard", "Records:", "a page in the browser: buckets, limits, usage, audit"],
  ["loadtest", "Other:", "load tests: scenarios against any store"],
  ["local", "Other:", "a local DynamoDB, PostgreSQL or Valkey in the background"],
  ["db", "Other:", "the schema of a store on PostgreSQL"],
  ["store", "Other:", "copies a store to another one of any kind"],
  ["stack", "Stack:", "stacks on AWS: deploy, status, list, upgrade, delete"],
  ["demo", "Other:", "limits at work, live, in a temporary store"],
  ["completion", "Other:", "completion for bash, zsh and fish"],
] as const;

/** The commands of `stack` without that word, as earlier versions have them. */
const SHORT_FORMS = [
  ["deploy", "creates a stack on AWS, or changes it"],
  ["status", "shows the state of a stack"],
  ["list", "lists the stacks of a region"],
  ["upgrade", "brings the code and the table of a stack to this version"],
  ["check", "checks whether this client can use a store"],
  ["version", "shows the versions of client, store and Lambda"],
  ["delete", "deletes a stack; its table and its archive stay"],
  ["cfn-template", "prints the CloudFormation template"],
  ["lambda-export", "writes the code of a Lambda to a file"],
] as const;

type Name = (typeof COMMANDS | typeof SHORT_FORMS)[number][0];

const LOADERS: Readonly<Record<Name, Entry["load"]>> = {
  acquire: async () => (await import("../commands/acquire.ts")).acquire,
  peek: async () => (await import("../commands/peek.ts")).peek,
  watch: async () => (await import("../commands/watch.ts")).watch,
  run: async () => (await import("../commands/run.ts")).run,
  entity: async () => (await import("../commands/records/entity.ts")).entity,
  resource: async () => (await import("../commands/records/resource.ts")).resource,
  system: async () => (await import("../commands/records/system.ts")).system,
  prices: async () => (await import("../commands/prices/prices.ts")).prices,
  alerts: async () => (await import("../commands/alerts/alerts.ts")).alerts,
  "alerts webhook": async () => (await import("../commands/alerts/webhook.ts")).webhook,
  limits: async () => (await import("../commands/limits/limits.ts")).limits,
  namespace: async () => (await import("../commands/records/namespace.ts")).namespace,
  audit: async () => (await import("../commands/records/audit.ts")).audit,
  usage: async () => (await import("../commands/records/usage.ts")).usage,
  aggregate: async () => (await import("../commands/aggregate.ts")).aggregate,
  gateway: async () => (await import("../commands/gateway/gateway.ts")).gateway,
  "gateway key": async () => (await import("../commands/gateway/gateway-key.ts")).gatewayKey,
  dashboard: async () => (await import("../commands/dashboard.ts")).dashboard,
  loadtest: async () => (await import("../commands/loadtest/loadtest.ts")).loadtest,
  local: async () => (await import("../commands/local/local.ts")).local,
  db: async () => (await import("../commands/db/db.ts")).db,
  store: async () => (await import("../commands/store/store.ts")).store,
  stack: async () => (await import("../commands/stack/stack.ts")).stack,
  demo: async () => (await import("../commands/demo.ts")).demo,
  completion: async () => (await import("../commands/completion.ts")).completionOf(loadTree),
  deploy: async () => (await import("../commands/stack/deploy.ts")).deploy,
  status: async () => (await import("../commands/stack/status.ts")).status,
  list: async () => (await import("../commands/stack/list.ts")).list,
  upgrade: async () => (await import("../commands/stack/upgrade.ts")).upgrade,
  check: async () => (await import("../commands/stack/version.ts")).check,
  version: async () => (await import("../commands/stack/version.ts")).version,
  delete: async () => (await import("../commands/stack/delete.ts")).deleteStack,
  "cfn-template": async () => (await import("../commands/stack/cfn-template.ts")).cfnTemplate,
  "lambda-export": async () => (await import("../commands/stack/lambda-export.ts")).lambdaExport,
};

export const REGISTRY: readonly Entry[] = [
  ...COMMANDS.map(([name, heading, summary]) => ({ name, heading, summary, load: LOADERS[name] })),
  ...SHORT_FORMS.map(([name, summary]) => {
    return { name, heading: "Stack:", summary, shortFor: "stack", load: LOADERS[name] };
  }),
];
