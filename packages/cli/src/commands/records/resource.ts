/** `resource`: limits of resources, for entities without limits of their own. */

import type { Group } from "../../frame/command.ts";
import { lostByResource } from "../../store/lost-limits.ts";
import { LEVEL_SHAPE } from "../../terminal/level-text.ts";
import { flagCommands } from "./flag-commands.ts";
import { limitCommands, resourcesCommand } from "./limit-commands.ts";

const RESOURCE = { name: "<resource>", text: "e.g. gpt-4" } as const;
const SHAPE = { resource: "text" } as const;

export const resource: Group = {
  name: "resource",
  summary: "default limits per resource",
  commands: [
    ...limitCommands({
      title: "a resource",
      wasDefaults: true,
      arguments: [RESOURCE],
      options: [],
      setExamples: ["resource set-limits gpt-4 -l rpm:1000 -l tpm:50000/min:80000"],
      shape: { owner: SHAPE, stored: LEVEL_SHAPE },
      at: (name) => ({
        owner: { json: { resource: name }, name },
        set: (records, limits, by) => records.setResource(name, limits, by),
        lost: (records) => lostByResource(records, name),
        get: (records) => records.level({ resource: name }),
        remove: async (records, by) => {
          const before = await records.getResource(name);
          await records.deleteResource(name, by);
          return before.length > 0;
        },
      }),
    }),
    resourcesCommand({
      name: "list",
      summary: "lists the resources that have limits",
      read: (records) => records.listResources(),
      none: "No resource has limits",
    }),
    ...flagCommands({
      group: "resource",
      argument: RESOURCE,
      example: ["gpt-4"],
      options: [],
      shape: SHAPE,
      target: (name) => ({ resource: name }),
    }),
  ],
};
