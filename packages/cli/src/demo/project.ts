/** The entities of the demo: a project with three keys, and limits at several levels. */

import type { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import type { ConfigSource } from "@zae-limiter/limiter/domain/precedence.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import type { Narrator } from "./narrator.ts";

export const RESOURCE = "gpt-4";
export const PROJECT = "search";
export const KEYS = ["web", "batch", "agent"] as const;
export type Key = (typeof KEYS)[number];

/** What an entity may do with the resource, and which level says so. */
export interface Allowance {
  readonly entityId: string;
  readonly parentId: string | undefined;
  readonly limits: readonly Limit[];
  readonly source: ConfigSource;
}

const ANSWERED_BY: Readonly<Record<ConfigSource, string>> = {
  entity: "this entity, this resource",
  entity_default: "this entity, any resource",
  resource: "the resource",
  system: "the system",
};

export async function createProject({ entities, limits }: Repository): Promise<void> {
  const principal = "setup";
  await entities.create({ id: PROJECT, principal });
  for (const id of KEYS) await entities.create({ id, parentId: PROJECT, cascade: true, principal });
  await limits.setResource(RESOURCE, ["rpm:20", "tpm:9000"], { principal });
  await limits.setEntity(PROJECT, ["rpm:90", "tpm:17000"], { principal });
  await limits.setEntity("batch", ["rpm:40", "tpm:4000"], { principal });
  const ofAgent = ["rpm:20", "tpm:12000/min:3000"];
  await limits.setEntity("agent", ofAgent, { resource: RESOURCE, principal });
}

/** While the traffic goes on. It applies at once, and is written to the audit log. */
export async function raiseBatch({ limits }: Repository): Promise<string> {
  await limits.setEntity("batch", ["rpm:60", "tpm:24000/min:6000"], { principal: "ops" });
  return `gives batch ${show(await limits.getEntity("batch"))}, at once`;
}

/** The project first, then its keys. */
export async function allowances({ limits }: Repository): Promise<Allowance[]> {
  const found: Allowance[] = [];
  for (const entityId of [PROJECT, ...KEYS]) {
    const resolved = await limits.resolve(entityId, RESOURCE);
    if (resolved === undefined) continue;
    const parentId = entityId === PROJECT ? undefined : PROJECT;
    found.push({ entityId, parentId, limits: resolved.limits, source: resolved.source });
  }
  return found;
}

export function tellProject(narrator: Narrator, all: readonly Allowance[]): void {
  narrator.chapter("A project with three keys, and which of the stored limits apply");
  const last = all.at(-1);
  narrator.table([
    ["entity", `limits on ${RESOURCE}`, "stored for"],
    ...all.map((one) => {
      const branch = one.parentId === undefined ? "" : one === last ? "└─ " : "├─ ";
      return [branch + one.entityId, show(one.limits), ANSWERED_BY[one.source]];
    }),
  ]);
  narrator.say(`  A call of a key consumes from ${PROJECT} too: all limits of both, or none.`);
}

function show(limits: readonly Limit[]): string {
  return limits.map(String).join("  ");
}
