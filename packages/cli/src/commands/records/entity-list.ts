/** `entity list`: all entities, or those with limits of their own. */

import { defined } from "@zae-limiter/limiter/base/defined.ts";
import { Entity } from "@zae-limiter/limiter/domain/entity.ts";
import {
  DEFAULT_RESOURCE,
  GATEWAY_KEY_PREFIX,
  isGatewayKey,
} from "@zae-limiter/limiter/domain/names.ts";
import type { SwitchState } from "@zae-limiter/limiter/records/config/switches.ts";
import { storedEntityIds } from "@zae-limiter/limiter/records/entities/entity-list.ts";
import { entityKey } from "@zae-limiter/limiter/records/keys.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { leaf, UsageError } from "../../frame/command.ts";
import { wholeNumber } from "../../terminal/numbers.ts";
import { ENTITY_SHAPE, entityJson, entityTable } from "./entity-text.ts";

const LIMIT_MAX = 1_000_000;
const PAGE = 1000;

interface ListOptions {
  readonly withCustomLimits?: string;
  readonly prefix?: string;
  readonly limit?: number;
  readonly cursor?: string;
}

export const listEntities = leaf<ListOptions>({
  name: "list",
  summary: "lists entities: all, or those with limits of their own",
  details:
    `Keys of a gateway are left out, unless --prefix ${GATEWAY_KEY_PREFIX} asks for them. ` +
    "A whole list ends with entities that were never created and have limits, buckets or usage.",
  options: [
    {
      flags: "--with-custom-limits <resource>",
      text:
        "those with limits of their own for this resource, also if never created; " +
        `${DEFAULT_RESOURCE} for limits for all resources`,
    },
    { flags: "--prefix <text>", text: "only ids with this prefix" },
    { flags: "-l, --limit <count>", text: "at most this many", parse: wholeNumber(1, LIMIT_MAX) },
    { flags: "--cursor <cursor>", text: "continue where an earlier list ended" },
  ],
  store: "read",
  examples: ["entity list", "entity list --prefix key-", "entity list --with-custom-limits gpt-4"],
  json: {
    resource: "text | null",
    entity_ids: ["text"],
    entities: [{ ...ENTITY_SHAPE, state: "text | null" }],
    cursor: "text | null",
  },
  run: async ({ options, open, note, terminal, hint }) => {
    const { withCustomLimits: resource, prefix } = options;
    if (resource !== undefined && prefix !== undefined) {
      throw new UsageError("--prefix and --with-custom-limits exclude each other. Leave one out");
    }
    const repo = await open();
    const { entityIds, entities, cursor } =
      resource === undefined
        ? await createdEntities(repo, options)
        : await limitedEntities(repo, resource, options);
    const states = await statesOf(repo, entities);
    return {
      json: () => ({
        resource: resource ?? null,
        entity_ids: entityIds,
        entities: entities.map((entity, at) => ({
          ...entityJson(entity),
          state: states[at] ?? null,
        })),
        cursor: cursor ?? null,
      }),
      text: () => {
        if (cursor !== undefined) note(`There are more; continue with --cursor ${cursor}`);
        if (resource === undefined) {
          return entities.length === 0
            ? `There are no entities. Create one with: ${hint("entity", "create", "key-1")}`
            : entityTable(entities, terminal.palette.faint, states);
        }
        return entityIds.length === 0
          ? `No entity has limits of its own for ${resource}`
          : entityIds.join("\n");
      },
    };
  },
});

interface Listed {
  readonly entityIds: readonly string[];
  readonly entities: readonly Entity[];
  readonly cursor: string | undefined;
}

/** Keys of a gateway are entities too, and `gateway key list` shows them. */
async function createdEntities(repo: Repository, options: ListOptions): Promise<Listed> {
  const { prefix } = options;
  const withKeys = prefix?.startsWith(GATEWAY_KEY_PREFIX) === true;
  const { found, cursor } = await allPages(options, async (page) => {
    const { entities, cursor: next } = await repo.entities.list({
      ...page,
      ...defined({ prefix }),
    });
    return { found: entities.filter(({ id }) => withKeys || !isGatewayKey(id)), next };
  });
  if (options.limit === undefined && options.cursor === undefined) {
    found.push(...(await usedEntities(repo, prefix ?? "", withKeys)));
  }
  return { entityIds: found.map(({ id }) => id), entities: found, cursor };
}

/** Finds entities without a record that have limits, buckets or usage. */
async function usedEntities(
  repo: Repository,
  prefix: string,
  withKeys: boolean,
): Promise<readonly Entity[]> {
  const { records, buckets } = repo[INTERNALS];
  const ids = new Set<string>();
  for await (const id of storedEntityIds(records)) ids.add(id);
  for await (const { entityId } of buckets.listAll()) ids.add(entityId);
  const wanted = [...ids].filter((id) => id.startsWith(prefix) && (withKeys || !isGatewayKey(id)));
  const keys = wanted.map((id) => entityKey(records.namespaceId, id));
  const stored = await records.store.getMany(keys);
  return wanted
    .filter((_, at) => stored[at] === undefined)
    .sort()
    .map((id) => new Entity({ id }));
}

async function limitedEntities(
  repo: Repository,
  resource: string,
  options: ListOptions,
): Promise<Listed> {
  const { found, cursor } = await allPages(options, async (page) => {
    const { entityIds, cursor: next } = await repo.limits.listEntities(resource, page);
    return { found: entityIds, next };
  });
  return { entityIds: found, entities: [], cursor };
}

/** Returns the state stored for all resources of each entity; most have none. */
function statesOf(
  { limits }: Repository,
  entities: readonly Entity[],
): Promise<(SwitchState | undefined)[]> {
  return Promise.all(entities.map(async ({ id }) => (await limits.level({ entityId: id })).state));
}

/** Reads on until there are as many as wanted. */
async function allPages<T>(
  { limit = Number.POSITIVE_INFINITY, cursor: first }: ListOptions,
  read: (page: { limit: number; cursor?: string }) => Promise<{
    found: readonly T[];
    next: string | undefined;
  }>,
): Promise<{ found: T[]; cursor: string | undefined }> {
  const all: T[] = [];
  let cursor = first;
  do {
    const page = { limit: Math.min(PAGE, limit - all.length), ...defined({ cursor }) };
    const { found, next } = await read(page);
    all.push(...found);
    cursor = next;
  } while (cursor !== undefined && all.length < limit);
  return { found: all, cursor };
}
