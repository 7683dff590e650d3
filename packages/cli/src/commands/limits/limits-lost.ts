/** Which limits the entities of a file lose, for `limits plan` and `limits apply`. */

import { type Manifest, targetKey } from "@zae-limiter/limiter/manifest/manifest.ts";
import type { LimitPlan } from "@zae-limiter/limiter/manifest/plan.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { type GeneralLevels, lostLimits, storedLevels } from "../../store/lost-limits.ts";

/** Returns what declared entities lose once the plan is carried out. */
export async function lostInManifest(
  manifest: Manifest,
  plan: LimitPlan,
  repo: Repository | undefined,
): Promise<string[]> {
  const levels = levelsAfter(manifest, plan, repo);
  const lines: string[] = [];
  for (const [entityId, configs] of manifest.entities) {
    const own = new Map([...configs].map(([resource, { limits }]) => [resource, limits]));
    lines.push(...(await lostLimits(entityId, own, levels)));
  }
  return lines;
}

/** Returns the levels after an apply: the declared ones and the stored ones that stay. */
function levelsAfter(
  manifest: Manifest,
  { changes }: LimitPlan,
  repo: Repository | undefined,
): GeneralLevels {
  const stored = repo === undefined ? undefined : storedLevels(repo.limits);
  const removed = new Set(
    changes.filter(({ action }) => action === "delete").map(({ target }) => targetKey(target)),
  );
  const stays = (resource: string) => !removed.has(targetKey({ level: "resource", resource }));
  return {
    resource: async (name) => {
      const declared = manifest.resources.get(name)?.limits;
      return declared ?? (stays(name) ? ((await stored?.resource(name)) ?? []) : []);
    },
    system: async () => {
      if (manifest.system !== undefined) return manifest.system.limits;
      return removed.has(targetKey({ level: "system" })) ? [] : ((await stored?.system()) ?? []);
    },
    resources: async () => {
      const names = [...manifest.resources.keys(), ...((await stored?.resources()) ?? [])];
      return [...new Set(names)]
        .filter((name) => manifest.resources.has(name) || stays(name))
        .sort();
    },
  };
}
