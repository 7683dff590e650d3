/** Finds what calls through a gateway need and its store does not have yet. */

import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { hasKeys } from "./keys.ts";

/** Returns a line with a command to paste for each thing; `hint` makes the commands. */
export async function missingIn(
  repository: Repository,
  isOpen: boolean,
  hint: (...words: readonly string[]) => string,
): Promise<string[]> {
  const { limits } = repository;
  const [system, resources] = await Promise.all([limits.getSystem(), limits.listResources()]);
  const lines: string[] = [];
  if (system.limits.length === 0 && resources.length === 0) {
    const command = hint("system", "set-limits", "-l", "rpm:60", "-l", "tpm:100000");
    lines.push(
      "There are no limits yet, for the system or for a resource: calls of entities without " +
        `limits of their own get an error. Set some, which takes up to a minute, with: ${command}`,
    );
  }
  if (!isOpen && !(await hasKeys(repository))) {
    const command = hint("gateway", "key", "create", "--entity", "team-a", "--create-entity");
    lines.push(`There are no keys yet: every call gets a 401. Create one with: ${command}`);
  }
  return lines;
}
