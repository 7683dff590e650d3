/** The manifest that tests of applying share. */

import type { ApplyResult } from "@zae-limiter/limiter/manifest/apply.ts";
import type { Manifest } from "@zae-limiter/limiter/manifest/manifest.ts";
import { parseManifest } from "@zae-limiter/limiter/manifest/parse-manifest.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";

/** A manifest of the cases 45 to 48: the system, two resources, one entity. */
export function manifestOf(repo: Repository, rpm = 10, resources = ["gpt-4", "gpt-3"]): Manifest {
  const limit = (capacity: number) => ({ limits: { rpm: { capacity } } });
  return parseManifest(
    JSON.stringify({
      namespace: repo.namespaceName,
      system: { on_unavailable: "block", ...limit(rpm) },
      resources: Object.fromEntries(resources.map((name) => [name, limit(rpm * 2)])),
      entities: { "user-1": { resources: { "gpt-4": limit(rpm * 3) } } },
    }),
  );
}

export function counts({ applied, failed }: ApplyResult): Record<string, number> {
  const of = (action: string) => applied.filter((change) => change.action === action).length;
  return {
    created: of("create"),
    updated: of("update"),
    deleted: of("delete"),
    failed: failed.length,
  };
}

export const NOTHING = { created: 0, updated: 0, deleted: 0, failed: 0 };
