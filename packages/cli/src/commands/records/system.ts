/** `system`: limits of a namespace, for everything without limits of its own. */

import { defined } from "@zae-limiter/limiter/base/defined.ts";
import type { OnUnavailable } from "@zae-limiter/limiter/domain/errors/unavailability.ts";
import { type Group, leaf } from "../../frame/command.ts";
import { lostBySystem } from "../../store/lost-limits.ts";
import { LEVEL_SHAPE } from "../../terminal/level-text.ts";
import { LIMIT_SHAPE, limitText } from "../../terminal/limit-text.ts";
import { table } from "../../terminal/table.ts";
import { limitCommands } from "./limit-commands.ts";

const MODE_SHAPE = { on_unavailable: "text | null" } as const;
const CONFIG_SHAPE = { limits: [LIMIT_SHAPE], ...MODE_SHAPE } as const;

const defaults = limitCommands<{ readonly onUnavailable?: OnUnavailable }>({
  title: "the namespace",
  wasDefaults: true,
  arguments: [],
  options: [],
  setOptions: [
    {
      flags: "--on-unavailable <mode>",
      text: "what acquires do while the store does not answer; stays as it is when not given",
      choices: ["allow", "block"],
    },
  ],
  setExamples: ["system set-limits -l rpm:100 -l tpm:10000 --on-unavailable block"],
  alsoDeletes: ", and its setting for unavailable stores",
  shape: {
    owner: {},
    stored: { ...CONFIG_SHAPE, unsupported: LEVEL_SHAPE.unsupported },
    settings: MODE_SHAPE,
  },
  at: (_, { onUnavailable }) => ({
    owner: { json: {}, name: "the system" },
    set: (records, limits, by) =>
      records.setSystem(limits, { ...by, ...defined({ onUnavailable }) }),
    lost: lostBySystem,
    get: (records) => records.systemLevel(),
    remove: async (records, by) => {
      const before = await records.getSystem();
      await records.deleteSystem(by);
      return before.limits.length > 0 || before.onUnavailable !== undefined;
    },
    settings: async (records) => {
      const { onUnavailable: mode } = await records.getSystem();
      return {
        json: { on_unavailable: mode ?? null },
        line: mode === undefined ? "" : `While the store does not answer: ${mode}`,
      };
    },
  }),
});

const list = leaf({
  name: "list",
  summary: "lists the limits of the namespace and of its resources",
  store: "read",
  json: { ...CONFIG_SHAPE, resources: [{ resource: "text", limits: [LIMIT_SHAPE] }] },
  run: async ({ open, terminal }) => {
    const records = (await open()).limits;
    const { limits, onUnavailable } = await records.getSystem();
    const names = await records.listResources();
    const resources = await Promise.all(
      names.map(async (name) => ({ resource: name, limits: await records.getResource(name) })),
    );
    return {
      json: () => ({
        limits: limits.map((limit) => limit.toJSON()),
        on_unavailable: onUnavailable ?? null,
        resources: resources.map((entry) => ({
          resource: entry.resource,
          limits: entry.limits.map((limit) => limit.toJSON()),
        })),
      }),
      text: () => {
        const rows = [{ resource: "(system)", limits }, ...resources].flatMap((entry) =>
          entry.limits.map((limit, at) => [at === 0 ? entry.resource : "", limitText(limit)]),
        );
        if (rows.length === 0) return "No limits are stored for the system or for any resource";
        return table(["RESOURCE", "LIMIT"], rows, terminal.palette.faint);
      },
    };
  },
});

export const system: Group = {
  name: "system",
  summary: "default limits of the namespace",
  commands: [...defaults, list],
};
