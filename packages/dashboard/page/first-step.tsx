/** The first steps in a namespace without limits or without calls. */

import type { LimitsJson, ListedResourcesJson } from "../src/wire.ts";
import { get, namespace } from "./api.ts";
import { useLoaded } from "./loaded.ts";
import { Card } from "./parts.tsx";
import { hrefOf, session } from "./state.ts";

/** The parameter of the page of limits that opens the editor of the system's limits. */
export const EDIT_SYSTEM = { edit: "system" } as const;

export function hasNoLimits(limits: LimitsJson): boolean {
  const { system, resources, entities, children } = limits;
  const isEmpty = (listed: ListedResourcesJson) =>
    listed.resources.length === 0 && !listed.hasDefaults;
  return system.length + resources.length === 0 && isEmpty(entities) && isEmpty(children);
}

/** Shows the first step on an overview without buckets. */
export function FirstStep() {
  const { data } = useLoaded(namespace.value, (signal) => get<LimitsJson>("limits", {}, signal));
  if (data === undefined) return null;
  if (!hasNoLimits(data)) {
    return (
      <Card title="Next step">
        <p>Limits are stored. A bucket appears here with the first acquire of each entity.</p>
      </Card>
    );
  }
  return (
    <Card title="First step">
      <p>No limits are stored yet. Begin with one that applies to everything.</p>
      <p class="first-step">
        {session.value?.readOnly === false && (
          <>
            <a class="button primary" href={hrefOf("limits", EDIT_SYSTEM)}>
              Set a system limit
            </a>
            <span class="faint">or run</span>
          </>
        )}
        {session.value?.readOnly === true && <span class="faint">Run</span>}
        <SystemCommand />
      </p>
    </Card>
  );
}

/** Shows the command that sets a system limit in the namespace that is shown. */
export function SystemCommand() {
  const name = session.value?.namespace ?? "default";
  const where = name === "default" ? "" : ` --namespace ${name}`;
  return <code class="chip wraps">npx zae-limiter system set-limits -l rpm:60{where}</code>;
}
