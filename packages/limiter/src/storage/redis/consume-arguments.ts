/** Makes the arguments of `CONSUME`: keys and builds, each once, and the calls as JSON. */

import type { WarmConsume, WarmLeg } from "../warm-buckets.ts";
import { cellKeys, rowKey, tagOfKey, tokenKey } from "./keys.ts";

/** The arguments in front of the builds. */
const BUILDS_FROM = 4;

/** Returns the keys and the arguments of calls that know the same config version. */
export function consumeArguments(
  prefix: string,
  [nowMs, isOwn]: readonly [nowMs: string, isOwn: string],
  consumes: readonly WarmConsume[],
): { readonly keys: readonly string[]; readonly args: readonly string[] } {
  const { configKey, knownVersion } = consumes[0] as WarmConsume;
  const keys = [cellKeys(prefix, configKey)[0]];
  const builds: string[] = [];
  const legOf = (leg: WarmLeg, token: string | undefined) => {
    const { key, build, parentId, cascades, acquires, entries } = leg;
    const { consumedMilli: takes, gatesMilli: gates, countedMilli: counts } = leg;
    const row = placeIn(keys, rowKey(prefix, key));
    const from = BUILDS_FROM + placeIn(builds, build);
    const link = cascades ? "1" : "0";
    const part = [row, from, parentId ?? "", cascades === undefined ? "" : link, acquires, takes];
    if (entries !== undefined && token !== undefined) {
      const spent = placeIn(keys, tokenKey(prefix, tagOfKey(key), token));
      return [...part, gates, counts, entries.map((entry) => entry ?? ""), spent];
    }
    return gates === takes && counts === takes ? part : [...part, gates, counts];
  };
  const calls = JSON.stringify(
    consumes.map(({ legs, token }) => legs.map((leg) => legOf(leg, token))),
  );
  const known = knownVersion === undefined ? "" : String(knownVersion);
  return { keys, args: [nowMs, isOwn, known, calls, ...builds] };
}

/** Returns the place of a text in a list, from 1; adds it where it is not there. */
function placeIn(list: string[], text: string): number {
  const at = list.indexOf(text);
  return at < 0 ? list.push(text) : at + 1;
}
