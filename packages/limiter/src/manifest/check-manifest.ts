/**
 * From data of any kind to a manifest. Everything is checked that storing would check, and more:
 * an unknown name is a typo, and a typo must not silently remove limits.
 */

import { defined } from "../base/defined.ts";
import { shorten } from "../base/shorten.ts";
import { isPlainObject, show } from "../domain/check.ts";
import { ValidationError } from "../domain/errors/errors.ts";
import { checkOnUnavailable } from "../domain/errors/unavailability.ts";
import { Limit, type LimitSpec } from "../domain/limit.ts";
import {
  checkConfigResource,
  checkEntityId,
  checkLimitName,
  checkNamespace,
  checkResource,
} from "../domain/names.ts";
import { emptyManifest, type LevelConfig, type Manifest } from "./manifest.ts";
import type { Problem, ProblemPath } from "./problem.ts";

const ORDINARY = { name: "x", capacity: 1, refillAmount: 1, refillPeriodSeconds: 1 } as const;
const PERIOD_SECONDS = 60;

const DISABLED_FLAGS = [true, false, "bypass"] as const;
const LEVEL_FIELDS = ["limits", "disabled", "cascade"];
const MANIFEST_FIELDS = ["namespace", "system", "resources", "entities"];
const SYSTEM_FIELDS = ["on_unavailable", "limits"];
/** The part of a limit that each number of a declaration sets. */
const LIMIT_PARTS: Readonly<Record<string, Exclude<keyof LimitSpec, "soft">>> = {
  capacity: "capacity",
  refill_amount: "refillAmount",
  refill_period: "refillPeriodSeconds",
  burst: "capacity",
};
const LIMIT_FIELDS = Object.keys(LIMIT_PARTS);

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
    const entities = this.#named(fields.entities, ["entities"], checkEntityId, (value, path) =>
      this.#entity(value, path),
    );
    return { namespace, ...defined({ system }), resources, entities };
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

  #entity(value: unknown, path: ProblemPath): ReadonlyMap<string, LevelConfig> {
    const { resources } = this.#fields(value, path, ["resources"]);
    const inner = [...path, "resources"];
    const configs = this.#named(resources, inner, checkConfigResource, (config, at) =>
      this.#level(config, at),
    );
    this.#refuseEmpty(value, "resources", path, "leave the entity out to manage none of it");
    return configs;
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
    const limits = this.#named(value, path, checkLimitName, (declaration, at, isNamed) =>
      this.#limit(declaration, at, isNamed),
    );
    return [...limits.values()].filter((limit) => limit !== undefined).sort(byName);
  }

  /** Reads a limit. An invalid name was reported already, and a valid one replaces it here. */
  #limit(value: unknown, path: ProblemPath, isNamed: boolean): Limit | undefined {
    const fields = this.#fields(value, path, [...LIMIT_FIELDS, "soft"]);
    if (!isPlainObject(value)) return undefined;
    const soft = this.#choice(fields.soft, [...path, "soft"], [true, false]);
    if (fields.capacity === undefined) {
      this.#refuse(path, "the capacity is missing; write capacity: and a whole number");
      return undefined;
    }
    const numbers = LIMIT_FIELDS.map((field) => this.#number(fields[field], [...path, field]));
    const [capacity, refillAmount, refillPeriod, burst] = numbers;
    if (numbers.some((number) => number === null)) return undefined;
    // As in the Python library, a burst replaces the capacity, also as the default below.
    const most = burst ?? capacity ?? 0;
    return this.#attempt(path, () =>
      Limit.custom({
        name: isNamed ? (path.at(-1) ?? "") : ORDINARY.name,
        capacity: most,
        refillAmount: refillAmount ?? most,
        refillPeriodSeconds: refillPeriod ?? PERIOD_SECONDS,
        ...defined({ soft }),
      }),
    );
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
  #attempt<Value>(path: ProblemPath, check: () => Value, atName = false): Value | undefined {
    try {
      return check();
    } catch (error) {
      if (!(error instanceof ValidationError)) throw error;
      this.#refuse(path, error.reason, atName);
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
  return value === undefined || (isPlainObject(value) && Object.keys(value).length === 0);
}

function ownField(value: Record<string, unknown>, name: string): unknown {
  return Object.hasOwn(value, name) ? value[name] : undefined;
}

/** Hints for the two most common mistakes: an empty section, and a limit that is a number. */
function hintFor(value: unknown, path: ProblemPath): string {
  if (value === null && path.length === 1 && path[0] !== "system") return "; write {} for none";
  if (typeof value === "number" && path.at(-2) === "limits") {
    return `; write { capacity: ${value} }`;
  }
  return "";
}

function byName(a: Limit, b: Limit): number {
  return a.name < b.name ? -1 : 1;
}
