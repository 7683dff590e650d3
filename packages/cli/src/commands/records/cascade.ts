/** `set-cascade` and `clear-cascade` of entities and resources. */

import { type ArgumentSpec, type Leaf, leaf } from "../../frame/command.ts";
import { PRINCIPAL_OPTION, type PrincipalOptions, principalOf } from "../../store/principal.ts";
import { counted } from "../../terminal/limit-text.ts";
import { ownerJson, ownerText, type Switched } from "./switch.ts";

const POLICY: ArgumentSpec = {
  name: "<policy>",
  text: "whether acquires consume from the parent too",
  choices: ["on", "off"],
};

export function cascadeCommands(switched: Switched): Leaf[] {
  return [cascadeCommand("set-cascade", switched), cascadeCommand("clear-cascade", switched)];
}

function cascadeCommand(name: "set-cascade" | "clear-cascade", switched: Switched): Leaf {
  const { group, argument, example, options, shape, target: targetOf } = switched;
  const sets = name === "set-cascade";
  const [place = "", ...rest] = example.split(" ");
  return leaf<PrincipalOptions & { readonly resource?: string }>({
    name,
    summary: sets
      ? "sets whether acquires consume from the parent too"
      : "removes the cascade policy, so that the next wider level decides",
    arguments: sets ? [argument, POLICY] : [argument],
    options: [...options, PRINCIPAL_OPTION],
    store: sets ? "write" : "change",
    examples: [[group, name, place, ...(sets ? ["on"] : []), ...rest].join(" ")],
    json: { ...shape, cascade: "boolean | null", stamped_buckets: "number" },
    run: async ({ args: [id = "", policy], options: given, open }) => {
      const target = targetOf(id, given);
      const cascade = sets ? policy === "on" : null;
      const { limits } = await open();
      const { stampedBuckets } = await limits.setCascade(target, cascade, principalOf(given));
      return {
        json: () => ({ ...ownerJson(target, group), cascade, stamped_buckets: stampedBuckets }),
        text: () => {
          const owner = ownerText(target);
          const said =
            cascade === null
              ? `Removed the cascade policy of ${owner}`
              : `${owner} ${cascade ? "cascades" : "does not cascade"}`;
          if (stampedBuckets === 0) return said;
          return `${said}\nStamped ${counted(stampedBuckets, "live bucket")}`;
        },
      };
    },
  });
}
