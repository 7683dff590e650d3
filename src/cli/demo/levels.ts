/** The first act: who is limited, at which levels limits are stored, and which of them apply. */

import type { Limit } from "../../domain/limit.ts";
import type { ConfigSource } from "../../domain/precedence.ts";
import type { Repository } from "../../repository/repository.ts";
import type { Scene } from "./act.ts";
import type { Narrator } from "./narrator.ts";

const ANSWERED_BY: Readonly<Record<ConfigSource, string>> = {
  entity: "this entity, this resource",
  entity_default: "this entity, any resource",
  resource: "the resource",
  system: "the system",
};

export async function showLevels({ repository, narrator }: Scene): Promise<void> {
  await createEntities(repository, narrator);
  await storeLimits(repository, narrator);
  narrator.chapter("Which limits apply, and where they come from");
  await showResolved(repository, narrator, [
    ["web", "gpt-4"],
    ["web", "embeddings"],
    ["batch", "gpt-4"],
    ["batch", "embeddings"],
    ["search", "gpt-4"],
    ["acme", "gpt-4"],
  ]);
  await changeLimits(repository, narrator);
}

async function createEntities({ entities }: Repository, narrator: Narrator): Promise<void> {
  narrator.chapter("Who is limited: a tenant, a project in it, two keys of the project");
  await entities.create({ id: "acme", name: "Acme" });
  await entities.create({ id: "search", parentId: "acme", cascade: true });
  await entities.create({ id: "web", parentId: "search", cascade: true });
  await entities.create({ id: "batch", parentId: "search", cascade: true });
  narrator.say("  acme");
  narrator.say("  └─ search      charges acme, too");
  narrator.say("     ├─ web      charges search and acme, too");
  narrator.say("     └─ batch    charges search and acme, too");
}

async function storeLimits({ limits }: Repository, narrator: Narrator): Promise<void> {
  narrator.chapter("Limits at several levels: the most specific one with any limits applies");
  await limits.setSystem(["rpm:60", "tpm:10000"]);
  await limits.setResource("gpt-4", ["rpm:30", "tpm:5000"]);
  await limits.setEntity("acme", ["rpm:300", "tpm:12000"]);
  await limits.setEntity("batch", ["rpm:20", "tpm:4000"]);
  await limits.setEntity("batch", ["rpm:5/10sec:20", "tpm:2000"], { resource: "gpt-4" });
  narrator.table([
    ["stored for", "limits"],
    ["the system", show((await limits.getSystem()).limits)],
    ["gpt-4", show(await limits.getResource("gpt-4"))],
    ["acme", show(await limits.getEntity("acme"))],
    ["batch", show(await limits.getEntity("batch"))],
    ["batch on gpt-4", show(await limits.getEntity("batch", { resource: "gpt-4" }))],
  ]);
}

async function changeLimits(repository: Repository, narrator: Narrator): Promise<void> {
  narrator.chapter("A change applies at once, and is written down with who made it");
  await repository.limits.deleteEntity("batch", { resource: "gpt-4", principal: "ops" });
  await showResolved(repository, narrator, [["batch", "gpt-4"]]);
  const events = await repository.audit.list("batch");
  narrator.say("");
  narrator.table([
    ["audit log of batch", "resource", "by"],
    ...events.map(({ action, resource, principal }) => [action, resource ?? "", principal ?? ""]),
  ]);
}

async function showResolved(
  { limits }: Repository,
  narrator: Narrator,
  calls: readonly (readonly [entityId: string, resource: string])[],
): Promise<void> {
  const rows = [];
  for (const [entityId, resource] of calls) {
    const resolved = await limits.resolve(entityId, resource);
    if (resolved === undefined) continue;
    rows.push([entityId, resource, show(resolved.limits), ANSWERED_BY[resolved.source]]);
  }
  narrator.table([["entity", "resource", "limits", "from"], ...rows]);
}

function show(limits: readonly Limit[]): string {
  return limits.map(String).join("  ");
}
