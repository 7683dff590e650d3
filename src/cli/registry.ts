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

const LIMITS = "Limits:";
const ACTING = "Acting:";
const RECORDS = "Records:";
const STACK = "Stack:";
const OTHER = "Other:";

const COMMANDS: readonly Entry[] = [
  {
    name: "acquire",
    summary: "consumes from the limits of an entity",
    heading: ACTING,
    load: async () => (await import("./commands/acquire.ts")).acquire,
  },
  {
    name: "peek",
    summary: "shows what is left, and consumes nothing",
    heading: ACTING,
    load: async () => (await import("./commands/peek.ts")).peek,
  },
  {
    name: "watch",
    summary: "shows what is left, live",
    heading: ACTING,
    load: async () => (await import("./commands/watch.ts")).watch,
  },
  {
    name: "run",
    summary: "consumes, runs a command, refunds if it fails",
    heading: ACTING,
    load: async () => (await import("./commands/run.ts")).run,
  },
  {
    name: "entity",
    summary: "entities and limits of their own",
    heading: LIMITS,
    load: async () => (await import("./commands/entity.ts")).entity,
  },
  {
    name: "resource",
    summary: "default limits per resource",
    heading: LIMITS,
    load: async () => (await import("./commands/resource.ts")).resource,
  },
  {
    name: "system",
    summary: "default limits of the namespace",
    heading: LIMITS,
    load: async () => (await import("./commands/system.ts")).system,
  },
  {
    name: "limits",
    summary: "limits declared in a file",
    heading: LIMITS,
    load: async () => (await import("./commands/limits.ts")).limits,
  },
  {
    name: "namespace",
    summary: "isolated sets of entities and limits in one store",
    heading: RECORDS,
    load: async () => (await import("./commands/namespace.ts")).namespace,
  },
  {
    name: "audit",
    summary: "the log of changes and their principals",
    heading: RECORDS,
    load: async () => (await import("./commands/audit.ts")).audit,
  },
  {
    name: "usage",
    summary: "what was consumed, by hour, day and month",
    heading: RECORDS,
    load: async () => (await import("./commands/usage.ts")).usage,
  },
  {
    name: "aggregate",
    summary: "counts usage from the stream of a table, until it is ended",
    heading: RECORDS,
    load: async () => (await import("./commands/aggregate.ts")).aggregate,
  },
  {
    name: "gateway",
    summary: "a proxy that limits calls to language models",
    heading: ACTING,
    load: async () => (await import("./commands/gateway.ts")).gateway,
  },
  {
    name: "gateway key",
    summary: "keys of clients of a gateway",
    heading: ACTING,
    load: async () => (await import("./commands/gateway-key.ts")).gatewayKey,
  },
  {
    name: "dashboard",
    summary: "a page in the browser: buckets, limits, usage, audit",
    heading: RECORDS,
    load: async () => (await import("./commands/dashboard.ts")).dashboard,
  },
  {
    name: "loadtest",
    summary: "load tests: scenarios against any store",
    heading: OTHER,
    load: async () => (await import("./commands/loadtest.ts")).loadtest,
  },
  {
    name: "local",
    summary: "a local DynamoDB in the background",
    heading: OTHER,
    load: async () => (await import("./commands/local.ts")).local,
  },
  {
    name: "stack",
    summary: "stacks on AWS: deploy, status, list, upgrade, delete",
    heading: STACK,
    load: async () => (await import("./commands/stack.ts")).stack,
  },
  {
    name: "demo",
    summary: "limits at work, live, in a temporary store",
    heading: OTHER,
    load: async () => (await import("./commands/demo.ts")).demo,
  },
  {
    name: "completion",
    summary: "completion for bash, zsh and fish",
    heading: OTHER,
    load: async () => (await import("./commands/completion.ts")).completionOf(loadTree),
  },
];

/** The commands of `stack` without that word, as earlier versions have them. */
const SHORT_FORMS: readonly Entry[] = [
  {
    name: "deploy",
    summary: "creates a stack on AWS, or changes it",
    heading: STACK,
    shortFor: "stack",
    load: async () => (await import("./commands/deploy.ts")).deploy,
  },
  {
    name: "status",
    summary: "shows the state of a stack",
    heading: STACK,
    shortFor: "stack",
    load: async () => (await import("./commands/status.ts")).status,
  },
  {
    name: "list",
    summary: "lists the stacks of a region",
    heading: STACK,
    shortFor: "stack",
    load: async () => (await import("./commands/list.ts")).list,
  },
  {
    name: "upgrade",
    summary: "brings the code and the table of a stack to this version",
    heading: STACK,
    shortFor: "stack",
    load: async () => (await import("./commands/upgrade.ts")).upgrade,
  },
  {
    name: "check",
    summary: "checks whether this client can use a store",
    heading: STACK,
    shortFor: "stack",
    load: async () => (await import("./commands/check.ts")).check,
  },
  {
    name: "version",
    summary: "shows the versions of client, store and Lambda",
    heading: STACK,
    shortFor: "stack",
    load: async () => (await import("./commands/version.ts")).version,
  },
  {
    name: "delete",
    summary: "deletes a stack; its table and its archive stay",
    heading: STACK,
    shortFor: "stack",
    load: async () => (await import("./commands/delete.ts")).deleteStack,
  },
  {
    name: "cfn-template",
    summary: "prints the CloudFormation template",
    heading: STACK,
    shortFor: "stack",
    load: async () => (await import("./commands/cfn-template.ts")).cfnTemplate,
  },
  {
    name: "lambda-export",
    summary: "writes the code of a Lambda to a file",
    heading: STACK,
    shortFor: "stack",
    load: async () => (await import("./commands/lambda-export.ts")).lambdaExport,
  },
];

export const REGISTRY: readonly Entry[] = [...COMMANDS, ...SHORT_FORMS];
