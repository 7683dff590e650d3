/** The file that a manifest is read from: as short as it can be, and read back as the same. */

import { Document, isScalar, parse, visit } from "yaml";
import type { JsonValue } from "../domain/json.ts";
import type { Limit } from "../domain/limit.ts";
import type { LevelConfig, Manifest } from "./manifest.ts";

const PERIOD_SECONDS = 60;

/** A limit as a manifest declares it, without what is the default anyway. */
interface LimitDeclaration {
  readonly capacity: number;
  readonly refill_amount?: number;
  readonly refill_period?: number;
}

/** YAML. */
export function printManifest(manifest: Manifest): string {
  const { namespace, system, resources, entities } = manifest;
  const document = new Document(
    {
      namespace,
      ...(system === undefined ? {} : { system: levelData(system) }),
      ...(resources.size === 0 ? {} : { resources: mapData(resources, levelData) }),
      ...(entities.size === 0
        ? {}
        : { entities: mapData(entities, (inner) => ({ resources: mapData(inner, levelData) })) }),
    },
    // Names such as `on` are text to us, and a boolean to older readers.
    { version: "1.2", compat: "yaml-1.1", aliasDuplicateObjects: false },
  );
  // A limit is one line.
  visit(document, {
    Map: (_, node) => {
      if (isScalar(node.get("capacity", true))) node.flow = true;
    },
  });
  return document.toString({ lineWidth: 0 });
}

/** The same as data, for those who do not write YAML. */
export function manifestJson(manifest: Manifest): JsonValue {
  return parse(printManifest(manifest), { stringKeys: true }) as JsonValue;
}

function levelData({ limits, onUnavailable }: LevelConfig): object {
  return {
    ...(onUnavailable === undefined ? {} : { on_unavailable: onUnavailable }),
    limits: Object.fromEntries(limits.map((limit) => [limit.name, declarationOf(limit)])),
  };
}

function declarationOf(limit: Limit): LimitDeclaration {
  const { capacity, refillAmount, refillPeriodSeconds } = limit;
  return {
    capacity,
    ...(refillAmount === capacity ? {} : { refill_amount: refillAmount }),
    ...(refillPeriodSeconds === PERIOD_SECONDS ? {} : { refill_period: refillPeriodSeconds }),
  };
}

/** A map rather than an object, because an object would put names that look like numbers first. */
function mapData<Part>(
  parts: ReadonlyMap<string, Part>,
  data: (part: Part) => object,
): Map<string, object> {
  return new Map([...parts].map(([name, part]) => [name, data(part)]));
}
