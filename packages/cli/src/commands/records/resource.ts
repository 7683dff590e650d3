/** `resource`: limits of resources, for entities without limits of their own. */

import { type Group, leaf } from "../../frame/command.ts";
import { lostByResource } from "../../store/lost-limits.ts";
import { PRINCIPAL_OPTION, type PrincipalOptions, principalOf } from "../../store/principal.ts";
import { deleteLimits, limitsSet, type Owner } from "../../store/stored-limits.ts";
import { LEVEL_SHAPE, levelShown } from "../../terminal/level-text.ts";
import { LIMIT_SHAPE, LIMITS_OPTION, parseLimits } from "../../terminal/limit-text.ts";
import { cascadeCommands } from "./cascade.ts";
import { type Switched, switchCommands } from "./switch.ts";

const RESOURCE = { name: "<resource>", text: "e.g. gpt-4" } as const;

function ownerOf(resource: string): Owner {
  return { json: { resource }, name: resource };
}

const setDefaults = leaf<PrincipalOptions & { limit: string[] }>({
  name: "set-limits",
  alias: "set-defaults",
  summary: "replaces the limits of a resource",
  arguments: [RESOURCE],
  options: [LIMITS_OPTION, PRINCIPAL_OPTION],
  store: "write",
  examples: ["resource set-limits gpt-4 -l rpm:1000 -l tpm:50000/min:80000"],
  json: { resource: "text", limits: [LIMIT_SHAPE], warnings: ["text"] },
  run: async (call) => {
    const {
      args: [resource = ""],
      options,
      open,
    } = call;
    const limits = parseLimits(options.limit);
    const records = (await open()).limits;
    await records.setResource(resource, limits, principalOf(options));
    return limitsSet(ownerOf(resource), limits, await lostByResource(records, resource), call);
  },
});

const getDefaults = leaf({
  name: "get-limits",
  alias: "get-defaults",
  summary: "shows the limits of a resource",
  arguments: [RESOURCE],
  store: "read",
  json: { resource: "text", ...LEVEL_SHAPE },
  run: async ({ args: [resource = ""], open }) =>
    levelShown(ownerOf(resource), await (await open()).limits.level({ resource })),
});

const deleteDefaults = leaf<PrincipalOptions>({
  name: "delete-limits",
  alias: "delete-defaults",
  summary: "removes the limits of a resource",
  arguments: [RESOURCE],
  options: [PRINCIPAL_OPTION],
  store: "change",
  confirms: true,
  json: { resource: "text", deleted: "boolean" },
  run: ({ args: [resource = ""], options, open, confirm }) =>
    deleteLimits(ownerOf(resource), {
      confirm,
      delete: async () => {
        const { limits } = await open();
        const before = await limits.getResource(resource);
        await limits.deleteResource(resource, principalOf(options));
        return before.length > 0;
      },
    }),
});

const list = leaf({
  name: "list",
  summary: "lists the resources that have limits",
  store: "read",
  json: { resources: ["text"] },
  run: async ({ open }) => {
    const resources = await (await open()).limits.listResources();
    return {
      json: () => ({ resources }),
      text: () => (resources.length === 0 ? "No resource has limits" : resources.join("\n")),
    };
  },
});

const SWITCHED: Switched = {
  group: "resource",
  argument: RESOURCE,
  example: "gpt-4",
  options: [],
  shape: { resource: "text" },
  target: (name) => ({ resource: name }),
};

export const resource: Group = {
  name: "resource",
  summary: "default limits per resource",
  commands: [
    setDefaults,
    getDefaults,
    deleteDefaults,
    list,
    ...switchCommands(SWITCHED),
    ...cascadeCommands(SWITCHED),
  ],
};
