/**
 * One text and one number for everything a manifest says, however its file is written. Text and
 * number are those of the Python library, so that both agree whether a manifest is already applied.
 */

import { createHash } from "node:crypto";
import type { LevelConfig, Manifest } from "./manifest.ts";

/** `sha256:` and 64 digits. */
export function fingerprintOf(manifest: Manifest): string {
  return `sha256:${createHash("sha256").update(canonicalText(manifest)).digest("hex")}`;
}

/** Every default written out, every name in order. */
function canonicalText(manifest: Manifest): string {
  const { namespace, system, resources, entities } = manifest;
  return sortedJson({
    namespace,
    ...(system === undefined ? {} : { system: levelData(system) }),
    ...(resources.size === 0 ? {} : { resources: mapData(resources, levelData) }),
    ...(entities.size === 0
      ? {}
      : {
          entities: mapData(entities, (configs) => ({ resources: mapData(configs, levelData) })),
        }),
  });
}

function levelData({ limits, onUnavailable, disabled, cascade }: LevelConfig): object {
  return {
    ...(onUnavailable === undefined ? {} : { on_unavailable: onUnavailable }),
    ...(disabled === undefined ? {} : { disabled }),
    ...(cascade === undefined ? {} : { cascade }),
    limits: Object.fromEntries(
      limits.map((limit) => [
        limit.name,
        {
          capacity: limit.capacity,
          refill_amount: limit.refillAmount,
          refill_period: limit.refillPeriodSeconds,
          ...(limit.soft ? { soft: true } : {}),
        },
      ]),
    ),
  };
}

function mapData<Part>(map: ReadonlyMap<string, Part>, data: (part: Part) => object): object {
  return Object.fromEntries([...map].map(([name, part]) => [name, data(part)]));
}

/** JSON as Python writes it: names sorted, a space after `,` and `:`, nothing beyond ASCII. */
function sortedJson(value: unknown): string {
  if (typeof value !== "object" || value === null) return ascii(JSON.stringify(value));
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  const texts = members.map(
    ([name, part]) => `${ascii(JSON.stringify(name))}: ${sortedJson(part)}`,
  );
  return `{${texts.join(", ")}}`;
}

function ascii(text: string): string {
  return text.replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
