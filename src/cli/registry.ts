/** Every command by its first word. What a command needs is loaded when it is used. */

import type { Group, Leaf } from "./command.ts";

export interface Entry {
  readonly name: string;
  readonly summary: string;
  /** The heading it stands under in the help. */
  readonly heading: string;
  readonly load: () => Promise<Group | Leaf>;
}

/** A command with all it has. */
export interface Branch {
  readonly entry: Entry;
  readonly node: Group | Leaf;
}

/** Everything there is, for completion and the reference. */
export async function loadTree(): Promise<readonly Branch[]> {
  return Promise.all(REGISTRY.map(async (entry) => ({ entry, node: await entry.load() })));
}

const LIMITS = "Limits:";
const ACTING = "Acting:";
const RECORDS = "Records:";
const STACK = "Stack:";
const OTHER = "Other:";

export const REGISTRY: readonly Entry[] = [
  {
    name: "acquire",
    summary: "takes from the limits of an entity",
    heading: ACTING,
    load: async () => (await import("./commands/acquire.ts")).acquire,
  },
  {
    name: "peek",
    summary: "shows what is left, and takes nothing",
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
    summary: "takes, runs a command, gives back if it fails",
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
    summary: "limits of resources",
    heading: LIMITS,
    load: async () => (await import("./commands/resource.ts")).resource,
  },
  {
    name: "system",
    summary: "limits of everything else",
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
    summary: "separate worlds in one store",
    heading: RECORDS,
    load: async () => (await import("./commands/namespace.ts")).namespace,
  },
  {
    name: "audit",
    summary: "who changed what",
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
    summary: "a DynamoDB engine in the background",
    heading: OTHER,
    load: async () => (await import("./commands/local.ts")).local,
  },
  {
    name: "deploy",
    summary: "creates a stack on AWS, or changes it",
    heading: STACK,
    load: async () => (await import("./commands/deploy.ts")).deploy,
  },
  {
    name: "status",
    summary: "shows how a stack is",
    heading: STACK,
    load: async () => (await import("./commands/status.ts")).status,
  },
  {
    name: "list",
    summary: "lists the stacks of a region",
    heading: STACK,
    load: async () => (await import("./commands/list.ts")).list,
  },
  {
    name: "upgrade",
    summary: "brings the code and the table of a stack to this version",
    heading: STACK,
    load: async () => (await import("./commands/upgrade.ts")).upgrade,
  },
  {
    name: "check",
    summary: "says whether this client and a store fit",
    heading: STACK,
    load: async () => (await import("./commands/check.ts")).check,
  },
  {
    name: "version",
    summary: "shows the versions of client, store and Lambda",
    heading: STACK,
    load: async () => (await import("./commands/version.ts")).version,
  },
  {
    name: "delete",
    summary: "deletes a stack; its table and its archive stay",
    heading: STACK,
    load: async () => (await import("./commands/delete.ts")).deleteStack,
  },
  {
    name: "cfn-template",
    summary: "prints the CloudFormation template",
    heading: STACK,
    load: async () => (await import("./commands/cfn-template.ts")).cfnTemplate,
  },
  {
    name: "lambda-export",
    summary: "writes the code of a Lambda to a file",
    heading: STACK,
    load: async () => (await import("./commands/lambda-export.ts")).lambdaExport,
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
