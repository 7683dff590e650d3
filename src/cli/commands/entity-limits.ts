/** `entity set-limits` and what belongs to it: limits of entities themselves. */

import { DEFAULT_RESOURCE } from "../../domain/names.ts";
import { leaf, type OptionSpec } from "../command.ts";
import { LIMIT_SHAPE, LIMITS_OPTION, parseLimits } from "../limit-text.ts";
import { lostLimits, storedLevels, warningText } from "../lost-limits.ts";
import { wholeNumber } from "../numbers.ts";
import { PRINCIPAL_OPTION, type PrincipalOptions, principalOf } from "../principal.ts";
import { deleteLimits as deleting, limitsSet, limitsShown, type Owner } from "../stored-limits.ts";

const ID = { name: "<id>", text: "the entity" } as const;
const RESOURCE_OPTION: OptionSpec = {
  flags: "-r, --resource <name>",
  text: "for one resource; else for all without limits of their own",
  default: DEFAULT_RESOURCE,
};
const LIMIT_MAX = 1_000_000;
const PAGE = 1000;

interface ResourceOptions {
  readonly resource: string;
}

const OWNER_SHAPE = { entity_id: "text", resource: "text" } as const;

function ownerOf(entityId: string, resource: string): Owner {
  const name = resource === DEFAULT_RESOURCE ? entityId : `${entityId} on ${resource}`;
  return { json: { entity_id: entityId, resource }, name };
}

export const setLimits = leaf<ResourceOptions & PrincipalOptions & { limit: string[] }>({
  name: "set-limits",
  summary: "replaces the limits of an entity",
  arguments: [ID],
  options: [LIMITS_OPTION, RESOURCE_OPTION, PRINCIPAL_OPTION],
  store: "write",
  examples: [
    "entity set-limits key-1 -l rpm:500 -l tpm:20000",
    "entity set-limits key-1 -r gpt-4 -l rpm:50",
  ],
  json: { ...OWNER_SHAPE, limits: [LIMIT_SHAPE], warnings: ["text"] },
  run: async ({ args: [id = ""], options, open, json, note }) => {
    const { resource } = options;
    const limits = parseLimits(options.limit);
    const records = (await open()).limits;
    await records.setEntity(id, limits, { resource, ...principalOf(options) });
    const lost = await lostLimits(id, new Map([[resource, limits]]), storedLevels(records));
    if (!json) for (const line of lost) note(warningText(line));
    return limitsSet(ownerOf(id, resource), limits, lost);
  },
});

export const getLimits = leaf<ResourceOptions>({
  name: "get-limits",
  summary: "shows the limits of an entity",
  details: "These are the limits stored for exactly this; `peek` shows those that apply.",
  arguments: [ID],
  options: [RESOURCE_OPTION],
  store: "read",
  json: { ...OWNER_SHAPE, limits: [LIMIT_SHAPE] },
  run: async ({ args: [id = ""], options: { resource }, open }) =>
    limitsShown(ownerOf(id, resource), await (await open()).limits.getEntity(id, { resource })),
});

export const deleteLimits = leaf<ResourceOptions & PrincipalOptions>({
  name: "delete-limits",
  summary: "removes the limits of an entity",
  arguments: [ID],
  options: [RESOURCE_OPTION, PRINCIPAL_OPTION],
  store: "change",
  confirms: true,
  json: { ...OWNER_SHAPE, deleted: "boolean" },
  run: ({ args: [id = ""], options, open, confirm }) =>
    deleting(ownerOf(id, options.resource), {
      confirm,
      delete: async () => {
        const { resource } = options;
        const { limits } = await open();
        const before = await limits.getEntity(id, { resource });
        await limits.deleteEntity(id, { resource, ...principalOf(options) });
        return before.length > 0;
      },
    }),
});

interface ListOptions {
  readonly withCustomLimits: string;
  readonly limit?: number;
  readonly cursor?: string;
}

export const listEntities = leaf<ListOptions>({
  name: "list",
  summary: "lists the entities that have limits of their own for a resource",
  options: [
    {
      flags: "--with-custom-limits <resource>",
      text: `the resource; ${DEFAULT_RESOURCE} for limits for all resources`,
      required: true,
    },
    { flags: "-l, --limit <count>", text: "at most so many", parse: wholeNumber(1, LIMIT_MAX) },
    { flags: "--cursor <cursor>", text: "go on where an earlier list ended" },
  ],
  store: "read",
  json: { resource: "text", entity_ids: ["text"], cursor: "text | null" },
  run: async ({ options, open, note }) => {
    const { withCustomLimits: resource, limit = Number.POSITIVE_INFINITY } = options;
    const { limits } = await open();
    const ids: string[] = [];
    let { cursor } = options;
    do {
      const page = await limits.listEntities(resource, {
        limit: Math.min(PAGE, limit - ids.length),
        ...(cursor === undefined ? {} : { cursor }),
      });
      ids.push(...page.entityIds);
      cursor = page.cursor;
    } while (cursor !== undefined && ids.length < limit);
    return {
      json: () => ({ resource, entity_ids: ids, cursor: cursor ?? null }),
      text: () => {
        if (cursor !== undefined) note(`There are more; go on with --cursor ${cursor}`);
        return ids.length === 0
          ? `No entity has limits of its own for ${resource}`
          : ids.join("\n");
      },
    };
  },
});

export const listResources = leaf({
  name: "list-resources",
  summary: "lists the resources for which entities have limits of their own",
  store: "read",
  json: { resources: ["text"] },
  run: async ({ open }) => {
    const resources = await (await open()).limits.listEntityResources();
    return {
      json: () => ({ resources }),
      text: () =>
        resources.length === 0 ? "No entity has limits of its own" : resources.join("\n"),
    };
  },
});
