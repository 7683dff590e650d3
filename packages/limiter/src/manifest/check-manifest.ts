/**
 * From data of any kind to a manifest. Everything is checked that storing would check, and more:
 * an unknown name is a typo, and a typo must not silently remove limits.
 */

import { defined } from "../base/defined.ts";
import { shorten } from "../base/shorten.ts";
import { isPlainObject, show } from "../domain/check.ts";
import { ValidationError } from "../domain/errors/errors.ts";
import { checkOnUnavailable } from "../domain/errors/unavailability.ts";
import { Limit } from "../domain/limit.ts";
import { defaultPeriodSeconds } from "../domain/limit-period.ts";
import type { LimitSpec } from "../domain/limit-spec.ts";
import {
  checkConfigResource,
  checkEntityId,
  checkLimitName,
  checkNamespace,
  checkParentId,
  checkResource,
} from "../domain/names.ts";
import type { WindowJson } from "../domain/schedule.ts";
import { parentsFirst } from "./entity-records.ts";
import { declaredLimit, placeOf, RESET_FIELDS } from "./limit-declaration.ts";
import { emptyManifest, type LevelConfig, type Manifest } from "./manifest.ts";
import type { Problem, ProblemPath } from "./problem.ts";

type Levels = ReadonlyMap<string, LevelConfig>;

const ORDINARY = { name: "x", capacity: 1, refillAmount: 1, refillPeriodSeconds: 1 } as const;

const DISABLED_FLAGS = [true, false, "bypass"] as const;
const LEVEL_FIELDS = ["limits", "disabled", "cascade"];
const MANIFEST_FIELDS = ["namespace", "replace_kind", "system", "resources", "entities"];
const ENTITY_FIELDS = ["parent", "cascade", "resources", "children"];
const SYSTEM_FIELDS = ["on_unavailable", "limits"];
/** The part of a limit that each number of a declaration sets. */
const LIMIT_PARTS: Readonly<Record<string, Exclude<keyof LimitSpec, "soft" | "rule">>> = {
  capacity: "capacity",
  refill_amount: "refillAmount",
  refill_period: "refillPeriodSeconds",
  burst: "capacity",
};
const LIMIT_FIELDS = Object.keys(LIMIT_PARTS);
const ALL_LIMIT_FIELDS = [...LIMIT_FIELDS, "soft", "alerts", "schedule", ...RESET_FIELDS];

/** An entity as a file declares it; `record` when it says more than limits. */
interface DeclaredEntity {
  readonly own: Levels;
  readonly ofChildren: Levels;
  readonly record: LevelConfig | undefined;
}

/** A manifest, or everything that is wrong with it. */
export type Checked =
  | { readonly manifest: Manifest }
  | { readonly problems: readonly [Problem, ...Problem[]] };

/** Checks data that came from a file, from JSON, or from CloudFormation. */
export function checkManifest(data: unknown): Checked {
  const checker = new Checker();
  const manifest = checker.manifest(data);
  const [first, ...rest] = checker.problems;
  return first === undefined ? { manifest } : { problems: [first, ...rest] };
}

/** Goes on after a problem, with something in its place, to find the others too. */
class Checker {
  readonly problems: Problem[] = [];

  manifest(data: unknown): Manifest {
    const fields = this.#fields(withoutExtensions(data), [], MANIFEST_FIELDS);
    if (!isPlainObject(data)) return emptyManifest("");
    const system =
      fields.system === undefined ? undefined : this.#system(fields.system, ["system"]);
    const namespace = this.#namespace(fields.namespace);
    const resources = this.#named(fields.resources, ["resources"], checkResource, (value, path) =>
      this.#level(value, path),
    );
    const found = this.#named(fields.entities, ["entities"], checkEntityId, (value, path) =>
      this.#entity(value, path),
    );
    const [entities, children] = [new Map<string, Levels>(), new Map<string, Levels>()];
    for (const [id, { own, ofChildren, record }] of found) {
      if (ofChildren.size > 0) children.set(id, ofChildren);
      const isEmpty = ofChildren.size === 0 && record === undefined;
      if (own.size > 0 || isEmpty) entities.set(id, own);
    }
    const records = parentsFirst(found, (id, circle) => {
      const reason = `"${id}" would be its own ancestor: ${circle.join(", ")}`;
      this.#refuse(["entities", id, "parent"], reason);
    });
    const replaceKind = this.#choice(fields.replace_kind, ["replace_kind"], [true, false]);
    return {
      namespace,
      ...(replaceKind === true ? { replaceKind } : {}),
      ...defined({ system }),
      resources,
      entities,
      children,
      records,
    };
  }

  #namespace(value: unknown): string {
    if (value === undefined) {
      this.#refuse([], "the namespace is missing; write namespace: and its name");
      return "";
    }
    return this.#attempt(["namespace"], () => checkNamespace(value)) ?? "";
  }

  #system(value: unknown, path: ProblemPath): LevelConfig {
    const { on_unavailable: mode, limits } = this.#fields(value, path, SYSTEM_FIELDS);
    const onUnavailable =
      mode === undefined
        ? undefined
        : this.#attempt([...path, "on_unavailable"], () => checkOnUnavailable(mode));
    if (isPlainObject(value) && mode === undefined && isNothing(limits)) {
      this.#refuse(path, "expected limits or on_unavailable; leave it out to have neither");
    }
    return { limits: this.#limits(limits, [...path, "limits"]), ...defined({ onUnavailable }) };
  }

  #entity(value: unknown, path: ProblemPath): DeclaredEntity {
    const fields = this.#fields(value, path, ENTITY_FIELDS);
    const { resources, children } = fields;
    const record = this.#record(fields, path);
    const own = this.#named(resources, [...path, "resources"], checkConfigResource, (config, at) =>
      this.#level(config, at),
    );
    const ofChildren = this.#named(
      children,
      [...path, "children"],
      checkConfigResource,
      (config, at) => this.#childrenLevel(config, at),
    );
    if (children !== undefined) {
      this.#refuseEmpty(value, "children", path, "leave them out to have none here");
    }
    if (resources !== undefined || (children === undefined && record === undefined)) {
      this.#refuseEmpty(value, "resources", path, "leave the entity out to manage none of it");
    }
    return { own, ofChildren, record };
  }

  /** Reads the parent of an entity, and whether it cascades; `undefined` without both. */
  #record(fields: Readonly<Record<string, unknown>>, path: ProblemPath): LevelConfig | undefined {
    const { parent: given, cascade: flag } = fields;
    if (given === undefined && flag === undefined) return undefined;
    const cascade = this.#choice(flag, [...path, "cascade"], [true, false]);
    if (given === undefined) return { limits: [], ...defined({ cascade }) };
    const parent = this.#attempt([...path, "parent"], () => checkParentId(given));
    return { limits: [], ...defined({ parent, cascade }) };
  }

  /** Reads the limits of children: switches and cascades are those of each child. */
  #childrenLevel(value: unknown, path: ProblemPath): LevelConfig {
    const { limits } = this.#fields(value, path, ["limits"]);
    this.#refuseEmpty(value, "limits", path, "leave it out to have none here");
    return { limits: this.#limits(limits, [...path, "limits"]) };
  }

  /** Limits, flags, or both. */
  #level(value: unknown, path: ProblemPath): LevelConfig {
    const fields = this.#fields(value, path, LEVEL_FIELDS);
    const disabled = this.#choice(fields.disabled, [...path, "disabled"], DISABLED_FLAGS);
    const cascade = this.#choice(fields.cascade, [...path, "cascade"], [true, false]);
    if (disabled === undefined && cascade === undefined) {
      this.#refuseEmpty(value, "limits", path, "leave it out to have none here");
    }
    const limits = this.#limits(fields.limits, [...path, "limits"]);
    return { limits, ...defined({ disabled, cascade }) };
  }

  /** Returns one of a few values; `undefined` when it is absent or wrong. */
  #choice<Value extends string | boolean>(
    value: unknown,
    path: ProblemPath,
    choices: readonly Value[],
  ): Value | undefined {
    if (value === undefined) return undefined;
    const found = choices.find((choice) => choice === value);
    if (found === undefined) {
      this.#refuse(path, `expected ${choices.join(" or ")}, got ${show(value)}`);
    }
    return found;
  }

  /** Refuses an empty value: it could mean "none" as well as "not yet". */
  #refuseEmpty(value: unknown, name: string, path: ProblemPath, hint: string): void {
    if (!isPlainObject(value)) return;
    const inner = ownField(value, name);
    if (inner === undefined) this.#refuse(path, `expected ${name}; ${hint}`);
    else if (isNothing(inner)) {
      this.#refuse([...path, name], `expected at least one of the ${name}; ${hint}`);
    }
  }

  #limits(value: unknown, path: ProblemPath): readonly Limit[] {
    const limits = Array.isArray(value)
      ? this.#texts(value, path)
      : this.#named(value, path, checkLimitName, (declaration, at, isNamed) =>
          this.#limit(declaration, at, isNamed),
        ).values();
    return [...limits].filter((limit) => limit !== undefined).sort(byName);
  }

  /** Reads a list of limits as text, such as `[rpm:60, tpm:10000]`. */
  #texts(values: readonly unknown[], path: ProblemPath): (Limit | undefined)[] {
    const names = new Set<string>();
    return values.map((value, index) => {
      const at = [...path, String(index)];
      if (typeof value !== "string") {
        this.#refuse(at, `expected a limit as text, such as rpm:100, got ${show(value)}`);
        return undefined;
      }
      const limit = this.#attempt(at, () => Limit.parse(value));
      if (limit === undefined) return undefined;
      if (names.has(limit.name)) this.#refuse(at, `the limit ${limit.name} is in the list twice`);
      names.add(limit.name);
      return limit;
    });
  }

  /** Reads a limit. An invalid name was reported already, and a valid one replaces it here. */
  #limit(value: unknown, path: ProblemPath, isNamed: boolean): Limit | undefined {
    const fields = this.#fields(value, path, ALL_LIMIT_FIELDS);
    if (!isPlainObject(value)) return undefined;
    const soft = this.#choice(fields.soft, [...path, "soft"], [true, false]);
    const name = isNamed ? (path.at(-1) ?? "") : ORDINARY.name;
    if (RESET_FIELDS.some((field) => fields[field] !== undefined)) {
      const check = () => declaredLimit(name, fields, soft);
      return this.#attempt(path, check, false, (error) => placeOf(error, fields));
    }
    if (fields.capacity === undefined) {
      this.#refuse(path, "the capacity is missing; write capacity: and a whole number");
      return undefined;
    }
    const numbers = LIMIT_FIELDS.map((field) => this.#number(fields[field], [...path, field]));
    const [capacity, refillAmount, refillPeriod, burst] = numbers;
    if (numbers.some((number) => number === null)) return undefined;
    // As in the Python library, a burst replaces the capacity, also as the default below.
    const most = burst ?? capacity ?? 0;
    const windows = fields.schedule as readonly WindowJson[] | undefined;
    return this.#attempt(path, () => {
      const limit = Limit.custom({
        name,
        capacity: most,
        refillAmount: refillAmount ?? most,
        refillPeriodSeconds: refillPeriod ?? defaultPeriodSeconds(name),
        ...defined({ soft, alerts: fields.alerts as readonly number[] | undefined }),
      });
      return windows === undefined ? limit : limit.withWindows(windows);
    });
  }

  /** Reads a number: `null` when it is wrong, `undefined` when it is absent. */
  #number(value: unknown, path: ProblemPath): number | null | undefined {
    if (value === undefined) return undefined;
    const part = LIMIT_PARTS[path.at(-1) ?? ""] ?? "capacity";
    // The bounds are those of `Limit`: tries a limit in which only this number is unusual.
    const accepted = this.#attempt(path, () =>
      Limit.custom({ ...ORDINARY, [part]: value as number }),
    );
    return accepted === undefined ? null : (value as number);
  }

  /** Reads a mapping from names of one kind; a wrong name is reported at its place. */
  #named<Part>(
    value: unknown,
    path: ProblemPath,
    checkName: (name: string) => string,
    read: (value: unknown, path: ProblemPath, isNamed: boolean) => Part,
  ): ReadonlyMap<string, Part> {
    const parts = new Map<string, Part>();
    if (value === undefined) return parts;
    for (const [name, part] of Object.entries(this.#mapping(value, path))) {
      const at = [...path, name];
      const isNamed = this.#attempt(at, () => checkName(name), true) !== undefined;
      parts.set(name, read(part, at, isNamed));
    }
    return parts;
  }

  /** Reads a mapping and reports names that are not known. */
  #fields(value: unknown, path: ProblemPath, names: readonly string[]): Record<string, unknown> {
    const mapping = this.#mapping(value, path);
    const known: Record<string, unknown> = {};
    for (const [name, part] of Object.entries(mapping)) {
      if (names.includes(name)) known[name] = part;
      else {
        const expected = names.length === 1 ? names[0] : `one of ${names.join(", ")}`;
        this.#refuse(
          [...path, name],
          `there is no ${JSON.stringify(shorten(name))} here; expected ${expected}`,
          true,
        );
      }
    }
    return known;
  }

  #mapping(value: unknown, path: ProblemPath): Record<string, unknown> {
    if (isPlainObject(value)) return value;
    this.#refuse(path, `expected a mapping, got ${show(value)}${hintFor(value, path)}`);
    return {};
  }

  /** Returns the result, or reports a problem in place of the error. */
  #attempt<Value>(
    path: ProblemPath,
    check: () => Value,
    atName = false,
    placeIn: (error: ValidationError) => ProblemPath = () => [],
  ): Value | undefined {
    try {
      return check();
    } catch (error) {
      if (!(error instanceof ValidationError)) throw error;
      this.#refuse([...path, ...placeIn(error)], error.reason, atName);
      return undefined;
    }
  }

  #refuse(path: ProblemPath, message: string, atName = false): void {
    this.problems.push({ path, message, ...(atName ? { atName } : {}) });
  }
}

/** Fields that begin with `x-` are for the reader of the file, such as anchors. */
function withoutExtensions(data: unknown): unknown {
  if (!isPlainObject(data)) return data;
  return Object.fromEntries(Object.entries(data).filter(([name]) => !name.startsWith("x-")));
}

/** Returns whether a value is absent or `{}`. */
function isNothing(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  return value === undefined || (isPlainObject(value) && Object.keys(value).length === 0);
}

function ownField(value: Record<string, unknown>, name: string): unknown {
  return Object.hasOwn(value, name) ? value[name] : undefined;
}

/** Hints for the most common mistakes: an empty section, a limit that is a number or a text. */
function hintFor(value: unknown, path: ProblemPath): string {
  if (value === null && path.length === 1 && path[0] !== "system") return "; write {} for none";
  if (typeof value === "number" && path.at(-2) === "limits") {
    return `; write { capacity: ${value} }`;
  }
  if (typeof value === "string" && path.at(-2) === "limits") {
    return `; limits as texts are a list: limits: ['${path.at(-1)}:${value}']`;
  }
  return "";
}

function byName(a: Limit, b: Limit): number {
  return a.name < b.name ? -1 : 1;
}
