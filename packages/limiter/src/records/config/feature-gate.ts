/**
 * Features that clients of the Python library must know before they use a table that has them.
 *
 * Storing one raises `client_min_version` of the table, so that older clients are refused when they
 * open it. Where a Lambda of the Python library runs that does not know the feature, it is refused.
 */

import { ValidationError } from "../../domain/errors/errors.ts";
import { VersionMismatchError } from "../../domain/errors/version-errors.ts";
import type { Limit } from "../../domain/limit.ts";
import { CLIENT_VERSION, isOlder } from "../../domain/version.ts";
import { versionKey } from "../keys.ts";
import type { RecordContext } from "../record-context.ts";
import { decodeVersion } from "../version-record.ts";
import type { PythonFollower } from "./python-follower.ts";
import { zoneOfLimit } from "./rule-attributes.ts";

/** The release of the Python library that brought each of them. */
const FEATURES = {
  bypass: "0.17.0",
  "cascade policy": "0.16.0",
  "session quota": "0.15.0",
  "soft limit": "0.17.0",
  "change of parent": "0.17.0",
} as const;

export type GatedFeature = keyof typeof FEATURES;

/** Refuses a feature that the Lambda of the table does not know; else asks clients to know it. */
export async function claimFeature(context: RecordContext, feature: GatedFeature): Promise<void> {
  const { store } = context;
  const needed = FEATURES[feature];
  for (;;) {
    const item = await store.get(versionKey(), { consistent: true });
    if (item === undefined) return;
    const { lambdaVersion, clientMinVersion, schemaVersion } = decodeVersion(item);
    if (lambdaVersion !== undefined && isOlder(lambdaVersion, needed)) {
      throw new VersionMismatchError({
        clientVersion: CLIENT_VERSION,
        schemaVersion,
        lambdaVersion,
        message: `A ${feature} needs release ${needed} of the Python library's Lambda. Upgrade it`,
        canAutoUpdate: false,
      });
    }
    if (!isOlder(clientMinVersion, needed)) return;
    const { ok } = await store.update(
      versionKey(),
      { set: { client_min_version: needed } },
      // Never lowered: another client may have raised it further meanwhile.
      [{ is: "=", name: "client_min_version", value: clientMinVersion, orAbsent: true }],
    );
    if (ok) return;
  }
}

/** Claims what limits need that older clients do not know, before they are stored. */
export async function claimKinds(
  python: PythonFollower | undefined,
  limits: readonly Limit[],
): Promise<void> {
  if (python === undefined) return;
  if (limits.some(({ soft }) => soft)) await python.claim("soft limit");
  if (limits.some(({ kind }) => kind === "session")) await python.claim("session quota");
  const ours = onlyOurs(limits);
  if (ours !== undefined) await python.refuse(ours);
}

/**
 * Refuses limits that the Python library would enforce in another way, on a table that claims its
 * Lambda: its clients and its Lambda write there.
 */
export async function refuseOnPythonTable(context: RecordContext, reason: string): Promise<void> {
  const item = await context.store.get(versionKey(), { consistent: true });
  const lambda = item === undefined ? undefined : decodeVersion(item).lambdaVersion;
  if (lambda === undefined) return;
  const place = `on a table that the Python library ${lambda} writes to`;
  throw new ValidationError("limits", lambda, `${reason}, ${place}`);
}

/** Returns a sentence about limits of a level that the Python library cannot have. */
function onlyOurs(limits: readonly Limit[]): string | undefined {
  const zones = new Set<string>();
  for (const limit of limits) {
    const { name, rule } = limit;
    if (rule?.kind === "quota" && rule.carry !== "none") {
      return `the quota "${name}" cannot carry "${rule.carry}"`;
    }
    const zone = zoneOfLimit(limit);
    if (zone !== undefined) zones.add(zone);
  }
  if (zones.size < 2) return undefined;
  const names = [...zones].join(", ");
  return `the quotas and windows of one level must have one time zone, got ${names}`;
}
