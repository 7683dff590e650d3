/** Marks of an overview: what is switched, bypassed or soft. */

import { DEFAULT_RESOURCE } from "@zae-limiter/limiter/domain/names.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import type { BalanceJson, OverviewJson } from "./wire.ts";

/** Levels whose switches are counted; a namespace with more of them has its first. */
const LEVELS_MAX = 1000;

/** Adds the counts of switches, and marks the limits that are listed. */
export async function marked(repository: Repository, seen: OverviewJson): Promise<OverviewJson> {
  const [counts, empty, scarce] = await Promise.all([
    switchCounts(repository),
    withMarks(repository, seen.empty),
    withMarks(repository, seen.scarce),
  ]);
  return { ...seen, ...counts, empty, scarce };
}

async function switchCounts({ limits }: Repository) {
  const [resources, entityResources] = await Promise.all([
    limits.listResources(),
    limits.listEntityResources(),
  ]);
  const targets: { resource?: string; entityId?: string }[] = resources.map((resource) => ({
    resource,
  }));
  for (const name of entityResources) {
    const room = LEVELS_MAX - targets.length;
    if (room <= 0) break;
    const { entityIds } = await limits.listEntities(name, { limit: room });
    const resource = name === DEFAULT_RESOURCE ? {} : { resource: name };
    targets.push(...entityIds.map((entityId) => ({ entityId, ...resource })));
  }
  const levels = await Promise.all(
    targets.slice(0, LEVELS_MAX).map((target) => limits.level(target)),
  );
  const count = (wanted: string) => levels.filter(({ state }) => state === wanted).length;
  return { disabledCount: count("disabled"), bypassCount: count("bypass") };
}

async function withMarks(
  repository: Repository,
  balances: readonly BalanceJson[],
): Promise<BalanceJson[]> {
  const { resolver } = repository[INTERNALS];
  return Promise.all(
    balances.map(async (balance) => {
      const { entityId, resource, limitName } = balance;
      const { disabledAt, bypassed, limits } = await resolver.current(entityId, resource);
      const isSoft = limits?.limits.some(({ name, soft }) => soft && name === limitName) ?? false;
      const mark =
        disabledAt !== undefined ? "disabled" : bypassed ? "bypass" : isSoft ? "soft" : undefined;
      return mark === undefined ? balance : { ...balance, mark };
    }),
  );
}
