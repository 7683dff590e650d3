/** `entity set-limits` and what belongs to it: limits of entities themselves. */

import { defined } from "@zae-limiter/limiter/base/defined.ts";
import { DEFAULT_RESOURCE } from "@zae-limiter/limiter/domain/names.ts";
import { leaf, type OptionSpec } from "../../frame/command.ts";
import { lostLimits, storedLevels } from "../../store/lost-limits.ts";
import { PRINCIPAL_OPTION, type PrincipalOptions, principalOf } from "../../store/principal.ts";
import { deleteLimits as deleting, limitsSet, type Owner } from "../../store/stored-limits.ts";
import { LEVEL_SHAPE, levelShown } from "../../terminal/level-text.ts";
import { LIMIT_SHAPE, LIMITS_OPTION, parseLimits } from "../../terminal/limit-text.ts";

import type { Switched } from "./switch.ts";

const ID = { name: "<id>", text: "the entity" } as const;
const RESOURCE_OPTION: OptionSpec = {
  flags: "-r, --resource <name>",
  text: "for one resource; else for all without limits of their own",
  default: DEFAULT_RESOURCE,
};

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
  run: async (call) => {
    const {
      args: [id = ""],
      options,
      open,
    } = call;
    const { resource } = options;
    const limits = parseLimits(options.limit);
    const records = (await open()).limits;
    await records.setEntity(id, limits, { resource, ...principalOf(options) });
    const lost = await lostLimits(id, new Map([[resource, limits]]), storedLevels(records));
    return limitsSet(ownerOf(id, resource), limits, lost, call);
  },
});

export const getLimits = leaf<ResourceOptions>({
  name: "get-limits",
  summary: "shows the limits of an entity",
  details: "These are the limits stored for exactly this; `peek` shows those that apply.",
  arguments: [ID],
  options: [RESOURCE_OPTION],
  store: "read",
  json: { ...OWNER_SHAPE, ...LEVEL_SHAPE },
  run: async ({ args: [id = ""], options: { resource }, open }) => {
    const level = await (await open()).limits.level({ entityId: id, resource });
    return levelShown(ownerOf(id, resource), level);
  },
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

/** For the commands that switch an entity, and say whether it cascades. */
export const SWITCHED: Switched = {
  group: "entity",
  argument: ID,
  example: "key-1 -r gpt-4",
  options: [{ flags: "-r, --resource <name>", text: "for one resource; else for all" }],
  shape: { entity_id: "text", resource: "text | null" },
  target: (entityId, { resource }) => ({ entityId, ...defined({ resource }) }),
};

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
