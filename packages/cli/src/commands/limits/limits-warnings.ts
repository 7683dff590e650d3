/**
 * The warnings about a file: names that state another period, limits that entities lose or that
 * the Python library does not see.
 */

import { TOTAL } from "@zae-limiter/limiter/domain/names.ts";
import {
  declarationsOf,
  type Manifest,
  targetKey,
} from "@zae-limiter/limiter/manifest/manifest.ts";
import type { LimitPlan } from "@zae-limiter/limiter/manifest/plan.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import {
  childrenOf,
  type GeneralLevels,
  lossText,
  lostLimits,
  storedLevels,
} from "../../store/lost-limits.ts";
import { nameWarnings, warningText } from "../../terminal/limit-text.ts";
import { targetText } from "./limits-text.ts";

/** The database that the Python library can use, as telemetry names it. */
const PYTHON_DATABASE = "aws.dynamodb";

/** Warnings as lines for programs, and as lines for people. */
export interface FileWarnings {
  readonly lines: readonly string[];
  readonly texts: readonly string[];
}

/** Returns the warnings about a file and its plan. */
export async function warningsOf(
  manifest: Manifest,
  plan: LimitPlan,
  repo: Repository | undefined,
): Promise<FileWarnings> {
  const others = [...namesInManifest(manifest), ...hiddenFromPython(manifest, repo)];
  const lost = await lostInManifest(manifest, plan, repo);
  return {
    lines: [...others, ...lost],
    texts: [...others.map(warningText), ...lost.map(lossText)],
  };
}

/** Returns a line on the places that clients of the Python library do not see, on a table. */
function hiddenFromPython(manifest: Manifest, repo: Repository | undefined): string[] {
  if (repo?.[INTERNALS].database.system !== PYTHON_DATABASE) return [];
  const hidden = declarationsOf(manifest)
    .map(([target]) => target)
    .filter((target) => target.level !== "system" && target.level !== "record")
    .filter(({ level, resource }) => level === "children" || resource === TOTAL);
  if (hidden.length === 0) return [];
  const places = hidden.map(targetText).join(", ");
  return [`Clients of the Python library do not see the limits of ${places}`];
}

/** Returns one line for each declared limit whose name states another period than it has. */
export function namesInManifest(manifest: Manifest): string[] {
  return declarationsOf(manifest).flatMap(([target, { limits }]) =>
    nameWarnings(limits).map((line) => `${targetText(target)}: ${line}`),
  );
}

/** Returns what declared entities lose once the plan is carried out. */
async function lostInManifest(
  manifest: Manifest,
  plan: LimitPlan,
  repo: Repository | undefined,
): Promise<string[]> {
  const levels = levelsAfter(manifest, plan, repo);
  const lines: string[] = [];
  const owners = [
    ...manifest.entities,
    ...[...manifest.children].map(([id, configs]) => [childrenOf(id), configs] as const),
  ];
  for (const [owner, configs] of owners) {
    const own = new Map([...configs].map(([resource, { limits }]) => [resource, limits]));
    lines.push(...(await lostLimits(owner, own, levels)));
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
