/** The file that a manifest is read from: as short as it can be, and read back as the same. */

import { Document, isScalar, parse, visit } from "yaml";
import { defined } from "../base/defined.ts";
import type { JsonValue } from "../domain/json.ts";
import type { Limit } from "../domain/limit.ts";
import { defaultPeriodSeconds } from "../domain/limit-period.ts";
import { resetData } from "./limit-declaration.ts";
import { flagsData, type LevelConfig, type Manifest, manifestData, wordsOf } from "./manifest.ts";

/** The Python library reads this period where there is none, whatever the name. */
const PYTHON_PERIOD_SECONDS = 60;

/** Returns the manifest as YAML. */
export function printManifest(manifest: Manifest): string {
  const { namespace, replaceKind, system, records } = manifest;
  const resources = declared(manifest.resources);
  const declaredIn = (levels: Manifest["entities"]) =>
    new Map(
      [...levels]
        .map(([id, configs]) => [id, declared(configs)] as const)
        .filter(([, configs]) => configs.size > 0),
    );
  const document = new Document(
    manifestData(
      {
        namespace,
        ...defined({ replaceKind }),
        ...(system !== undefined && isDeclared(system) ? { system } : {}),
        resources,
        entities: declaredIn(manifest.entities),
        children: declaredIn(manifest.children),
        records,
      },
      levelData,
    ),
    // Names such as `on` are text to us, and a boolean to older readers.
    { version: "1.2", compat: "yaml-1.1", aliasDuplicateObjects: false },
  );
  document.commentBefore = unsupportedComment(manifest) ?? null;
  // A limit is one line.
  visit(document, {
    Map: (_, node) => {
      if (isScalar(node.get("capacity", true)) || node.has("quota")) node.flow = true;
    },
  });
  return document.toString({ lineWidth: 0 });
}

/** Returns the manifest as JSON data. */
export function manifestJson(manifest: Manifest): JsonValue {
  return parse(printManifest(manifest), { stringKeys: true }) as JsonValue;
}

function levelData(config: LevelConfig): object {
  const { limits, disabled, cascade } = config;
  const hasFlags = disabled !== undefined || cascade !== undefined;
  if (hasFlags && limits.length === 0) return flagsData(config);
  const declarations = limits.map((limit) => [limit.name, declarationOf(limit)]);
  return { ...flagsData(config), limits: Object.fromEntries(declarations) };
}

/** Returns a comment on stored limits that cannot be declared: the file would seem complete. */
function unsupportedComment({ system, resources, entities }: Manifest): string | undefined {
  const lines = (place: string, { unsupported = [] }: LevelConfig) =>
    unsupported.map(({ name, kind }) => ` ${place}: ${name} (${kind})`);
  const all = [
    ...(system === undefined ? [] : lines("system", system)),
    ...[...resources].flatMap(([resource, config]) => lines(resource, config)),
    ...[...entities].flatMap(([entityId, configs]) =>
      [...configs].flatMap(([resource, config]) => lines(`${entityId}/${resource}`, config)),
    ),
  ];
  if (all.length === 0) return undefined;
  const heading =
    " Only the Python library enforces these, so they are not in this file. They stay:";
  return [heading, ...all].join("\n");
}

/** Whether a level declares anything: what only Python enforces cannot be declared. */
function isDeclared({ limits, onUnavailable, disabled, cascade }: LevelConfig): boolean {
  const flags = [onUnavailable, disabled, cascade];
  return limits.length > 0 || flags.some((flag) => flag !== undefined);
}

function declared(configs: ReadonlyMap<string, LevelConfig>): ReadonlyMap<string, LevelConfig> {
  return new Map([...configs].filter(([, config]) => isDeclared(config)));
}

/** Returns a limit as a manifest declares it, without parts that equal their default. */
function declarationOf(limit: Limit): object {
  const reset = resetData(limit);
  if (reset !== undefined) return { ...reset, ...wordsOf(limit) };
  const { name, capacity, refillAmount, refillPeriodSeconds } = limit;
  const isDefault = [PYTHON_PERIOD_SECONDS, defaultPeriodSeconds(name)].every(
    (seconds) => seconds === refillPeriodSeconds,
  );
  return {
    capacity,
    ...(refillAmount === capacity ? {} : { refill_amount: refillAmount }),
    ...(isDefault ? {} : { refill_period: refillPeriodSeconds }),
    ...wordsOf(limit),
  };
}
