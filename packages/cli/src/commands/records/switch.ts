/** `disable`, `enable`, `bypass` and `clear` of entities and resources. */

import type { FlagTarget } from "@zae-limiter/limiter/records/config/config-level.ts";
import type { SwitchRecords, SwitchState } from "@zae-limiter/limiter/records/config/switches.ts";
import {
  type ArgumentSpec,
  type Leaf,
  leaf,
  type OptionSpec,
  type Shape,
} from "../../frame/command.ts";
import { PRINCIPAL_OPTION, type PrincipalOptions, principalOf } from "../../store/principal.ts";
import { stateText } from "../../terminal/level-text.ts";
import { counted } from "../../terminal/limit-text.ts";

type Action = "disable" | "enable" | "bypass" | "clear";

const STATES: Readonly<Record<Action, SwitchState | undefined>> = {
  disable: "disabled",
  enable: "enabled",
  bypass: "bypass",
  clear: undefined,
};

const SUMMARIES: Readonly<Record<Action, string>> = {
  disable: "switches off: every acquire is refused, and balances stay",
  enable: "switches on, also where a wider level switches off",
  bypass: "grants everything and counts it: nothing is refused, and balances stay",
  clear: "removes the switch, so that the next wider level decides",
};

/** What the commands of one group have in common. */
export interface Switched {
  /** The word of the group, for examples. */
  readonly group: "entity" | "resource";
  readonly argument: ArgumentSpec;
  readonly example: string;
  readonly options: readonly OptionSpec[];
  readonly shape: Readonly<Record<string, Shape>>;
  readonly target: (name: string, options: { readonly resource?: string }) => FlagTarget;
}

export function switchCommands(switched: Switched): Leaf[] {
  return (["disable", "enable", "bypass", "clear"] as const).map((action) =>
    switchCommand(action, switched),
  );
}

function switchCommand(action: Action, switched: Switched): Leaf {
  const { group, argument, example, options, shape, target: targetOf } = switched;
  return leaf<PrincipalOptions & { readonly resource?: string }>({
    name: action,
    summary: SUMMARIES[action],
    arguments: [argument],
    options: [...options, PRINCIPAL_OPTION],
    store: action === "clear" ? "change" : "write",
    examples: [`${group} ${action} ${example}`],
    json: { ...shape, state: "text | null", stamped_buckets: "number" },
    run: async ({ args: [name = ""], options: given, open }) => {
      const target = targetOf(name, given);
      const { limits } = await open();
      const { stampedBuckets } = await change(limits, action, target, principalOf(given));
      const state = STATES[action];
      return {
        json: () => ({
          ...ownerJson(target, group),
          state: state ?? null,
          stamped_buckets: stampedBuckets,
        }),
        text: () => {
          const said =
            state === undefined
              ? `Removed the switch of ${ownerText(target)}`
              : `${ownerText(target)} is ${stateText(state)}`;
          const stamped = counted(stampedBuckets, "live bucket");
          return stampedBuckets === 0 ? said : `${said}\nStamped ${stamped}`;
        },
      };
    },
  });
}

function change(
  limits: SwitchRecords,
  action: Action,
  target: FlagTarget,
  by: { principal?: string },
) {
  return limits[action](target, by);
}

export function ownerJson({ entityId, resource }: FlagTarget, group: Switched["group"]) {
  return group === "entity"
    ? { entity_id: entityId ?? null, resource: resource ?? null }
    : { resource: resource ?? null };
}

export function ownerText({ entityId, resource }: FlagTarget): string {
  if (entityId === undefined) return resource ?? "";
  return resource === undefined ? entityId : `${entityId} on ${resource}`;
}
