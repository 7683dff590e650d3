/**
 * Features that clients of the Python library must know before they use a table that has them.
 *
 * Storing one raises `client_min_version` of the table, so that older clients are refused when they
 * open it. Where a Lambda of the Python library runs that does not know the feature, it is refused.
 */

import { VersionMismatchError } from "../../domain/errors/version-errors.ts";
import type { Limit } from "../../domain/limit.ts";
import { CLIENT_VERSION, isOlder } from "../../domain/version.ts";
import { versionKey } from "../keys.ts";
import type { RecordContext } from "../record-context.ts";
import { decodeVersion } from "../version-record.ts";
import type { PythonFollower } from "./python-follower.ts";

/** The release of the Python library that brought each of them. */
const FEATURES = {
  bypass: "0.17.0",
  "cascade policy": "0.16.0",
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

/** Claims soft limits, where some of these are. */
export async function claimSoft(
  python: PythonFollower | undefined,
  limits: readonly Limit[],
): Promise<void> {
  if (limits.some(({ soft }) => soft)) await python?.claim("soft limit");
}
