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
  readonly soft?: true;
}

/** YAML. */
export function printManifest(manifest: Manifest): string {
  const { namespace } = manifest;
  const system =
    manifest.system !== undefined && isDeclared(manifest.system) ? manifest.system : undefined;
  const resources = declared(manifest.resources);
  const entities = new Map(
    [...manifest.entities]
      .map(([id, configs]) => [id, declared(configs)] as const)
      .filter(([, configs]) => configs.size > 0),
  );
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
  document.commentBefore = unsupportedComment(manifest) ?? null;
  // A limit is one line.
  visit(document, {
    Map: (_, node) => {
      if (isScalar(node.get("capacity", true))) node.flow = true;
    },
  });
  return document.toString({ lineWidth: 0 });
}

/** Returns the manifest as JSON data. */
export function manifestJson(manifest: Manifest): JsonValue {
  return parse(printManifest(manifest), { stringKeys: true }) as JsonValue;
}

function levelData({ limits, onUnavailable, disabled, cascade }: LevelConfig): object {
  const hasFlags = disabled !== undefined || cascade !== undefined;
  return {
    ...(onUnavailable === undefined ? {} : { on_unavailable: onUnavailable }),
    ...(disabled === undefined ? {} : { disabled }),
    ...(cascade === undefined ? {} : { cascade }),
    ...(hasFlags && limits.length === 0
      ? {}
      : { limits: Object.fromEntries(limits.map((limit) => [limit.name, declarationOf(limit)])) }),
  };
}

/** Says what is stored and cannot be declared: a file without it would look complete. */
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

function declarationOf(limit: Limit): LimitDeclaration {
  const { capacity, refillAmount, refillPeriodSeconds } = limit;
  return {
    capacity,
    ...(refillAmount === capacity ? {} : { refill_amount: refillAmount }),
    ...(refillPeriodSeconds === PERIOD_SECONDS ? {} : { refill_period: refillPeriodSeconds }),
    ...(limit.soft ? { soft: true } : {}),
  };
}

/** A map rather than an object, because an object would put names that look like numbers first. */
function mapData<Part>(
  parts: ReadonlyMap<string, Part>,
  data: (part: Part) => object,
): Map<string, object> {
  return new Map([...parts].map(([name, part]) => [name, data(part)]));
}
