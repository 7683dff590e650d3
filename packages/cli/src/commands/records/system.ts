/** `system`: limits of a namespace, for everything without limits of its own. */

import { defined } from "@zae-limiter/limiter/base/defined.ts";
import type { OnUnavailable } from "@zae-limiter/limiter/domain/errors/unavailability.ts";
import type { JsonValue } from "@zae-limiter/limiter/domain/json.ts";
import { type Group, leaf, type Result } from "../../frame/command.ts";
import { lostBySystem } from "../../store/lost-limits.ts";
import { PRINCIPAL_OPTION, type PrincipalOptions, principalOf } from "../../store/principal.ts";
import { deleteLimits, limitsSet, type Owner } from "../../store/stored-limits.ts";
import { LEVEL_SHAPE, levelJson, levelText } from "../../terminal/level-text.ts";
import { LIMIT_SHAPE, LIMITS_OPTION, limitText, parseLimits } from "../../terminal/limit-text.ts";
import { table } from "../../terminal/table.ts";

const OWNER: Owner = { json: {}, name: "the system" };
const CONFIG_SHAPE = { limits: [LIMIT_SHAPE], on_unavailable: "text | null" } as const;

function withMode(result: Result, mode: OnUnavailable | undefined): Result {
  return {
    json: () => ({
      ...(result.json() as { readonly [name: string]: JsonValue }),
      on_unavailable: mode ?? null,
    }),
    text: async () => {
      const text = await result.text();
      return mode === undefined ? text : `${text}\nWhile the store does not answer: ${mode}`;
    },
  };
}

const setDefaults = leaf<PrincipalOptions & { limit: string[]; onUnavailable?: OnUnavailable }>({
  name: "set-limits",
  alias: "set-defaults",
  summary: "replaces the limits of the namespace",
  options: [
    LIMITS_OPTION,
    {
      flags: "--on-unavailable <mode>",
      text: "what acquires do while the store does not answer; stays as it is when not given",
      choices: ["allow", "block"],
    },
    PRINCIPAL_OPTION,
  ],
  store: "write",
  examples: ["system set-limits -l rpm:100 -l tpm:10000 --on-unavailable block"],
  json: { ...CONFIG_SHAPE, warnings: ["text"] },
  run: async (call) => {
    const { options } = call;
    const limits = parseLimits(options.limit);
    const { onUnavailable } = options;
    const records = (await call.open()).limits;
    await records.setSystem(limits, { ...principalOf(options), ...defined({ onUnavailable }) });
    const stored = onUnavailable ?? (await records.getSystem()).onUnavailable;
    const lost = await lostBySystem(records);
    return withMode(limitsSet(OWNER, limits, lost, call), stored);
  },
});

const getDefaults = leaf({
  name: "get-limits",
  alias: "get-defaults",
  summary: "shows the limits of the namespace",
  store: "read",
  json: { ...CONFIG_SHAPE, unsupported: LEVEL_SHAPE.unsupported },
  run: async ({ open }) => {
    const { limits: records } = await open();
    const [level, { onUnavailable }] = [await records.systemLevel(), await records.getSystem()];
    const { limits, unsupported } = levelJson(level);
    const shown = {
      json: () => ({ limits, unsupported }),
      text: () => levelText(OWNER.name, level),
    };
    return withMode(shown, onUnavailable);
  },
});

const deleteDefaults = leaf<PrincipalOptions>({
  name: "delete-limits",
  alias: "delete-defaults",
  summary: "removes the limits of the namespace, and its setting for unavailable stores",
  options: [PRINCIPAL_OPTION],
  store: "change",
  confirms: true,
  json: { deleted: "boolean" },
  run: ({ options, open, confirm }) =>
    deleteLimits(OWNER, {
      confirm,
      delete: async () => {
        const { limits } = await open();
        const before = await limits.getSystem();
        await limits.deleteSystem(principalOf(options));
        return before.limits.length > 0 || before.onUnavailable !== undefined;
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
  commands: [setDefaults, getDefaults, deleteDefaults, list],
};
