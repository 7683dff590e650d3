/**
 * The template for certain parameters: conditions are decided, parameters filled in, and what they
 * leave out is gone. What only AWS knows, such as the ARN of a resource, stays as it is.
 */

import { invariant, isPlainObject } from "@zae-limiter/limiter/domain/check.ts";
import type { CfnOutput, CfnResource, CfnTemplate, CfnValue } from "./cfn.ts";
import { OPTIONAL_NUMBERS } from "./parameters.ts";

export interface ResolvedTemplate {
  readonly Resources: Readonly<Record<string, CfnResource>>;
  readonly Outputs: Readonly<Record<string, CfnOutput>>;
}

type Values = Readonly<Record<string, string | number>>;

/** Resolves a template; `values` has parameters and pseudo parameters such as `AWS::StackName`. */
export function resolveTemplate(
  template: CfnTemplate,
  values: Readonly<Record<string, string>>,
): ResolvedTemplate {
  const defaults = Object.entries(template.Parameters).map(([name, { Default }]) => [
    name,
    Default,
  ]);
  const given = Object.entries(values).map(([name, value]) => {
    const isNumber = template.Parameters[name]?.Type === "Number" || OPTIONAL_NUMBERS.has(name);
    return [name, isNumber && value !== "" ? Number(value) : value];
  });
  const known: Values = Object.fromEntries([...defaults, ...given]);
  const resolver = new Resolver(template.Conditions, known);
  const stands = ([, { Condition }]: [string, { readonly Condition?: string }]) =>
    Condition === undefined || resolver.holds(Condition);
  const resolved = <Part extends CfnResource | CfnOutput>(parts: Readonly<Record<string, Part>>) =>
    Object.fromEntries(
      Object.entries(parts)
        .filter(stands)
        .map(([id, { Condition: _, ...part }]) => [id, resolver.value(part as never) as never]),
    ) as Record<string, Part>;
  return { Resources: resolved(template.Resources), Outputs: resolved(template.Outputs) };
}

class Resolver {
  readonly #conditions: Readonly<Record<string, CfnValue>>;
  readonly #values: Values;

  constructor(conditions: Readonly<Record<string, CfnValue>>, values: Values) {
    this.#conditions = conditions;
    this.#values = values;
  }

  holds(name: string): boolean {
    const condition = this.#conditions[name];
    invariant(condition !== undefined, `the template has no condition ${name}`);
    return this.value(condition) === true;
  }

  /** Resolves a value; `undefined`: it is absent. */
  value(value: CfnValue): CfnValue | undefined {
    if (Array.isArray(value)) return this.#list(value as readonly CfnValue[]);
    if (!isPlainObject(value)) return value;
    const entries = Object.entries(value) as [string, CfnValue | undefined][];
    const [first] = entries;
    if (first !== undefined && entries.length === 1 && first[1] !== undefined) {
      const [name, argument] = first;
      const evaluate = this.#functions[name];
      if (evaluate !== undefined) return evaluate(argument as never);
    }
    const parts = entries.map(([name, part]) => [
      name,
      part === undefined ? undefined : this.value(part),
    ]);
    return Object.fromEntries(parts.filter(([, part]) => part !== undefined));
  }

  #list(values: readonly CfnValue[]): CfnValue[] {
    return values.map((value) => this.value(value)).filter((value) => value !== undefined);
  }

  readonly #functions: Readonly<Record<string, (argument: never) => CfnValue | undefined>> = {
    Ref: (name: string) =>
      name === "AWS::NoValue" ? undefined : (this.#values[name] ?? { Ref: name }),
    Condition: (name: string) => this.holds(name),
    "Fn::If": ([condition, then, otherwise]: [string, CfnValue, CfnValue]) =>
      this.value(this.holds(condition) ? then : otherwise),
    "Fn::Equals": (pair: CfnValue[]) => {
      const [left, right] = this.#list(pair);
      // To CloudFormation a number is a text.
      return typeof left === "number" ? String(left) === right : left === right;
    },
    "Fn::Not": (parts: CfnValue[]) => this.#list(parts)[0] !== true,
    "Fn::And": (parts: CfnValue[]) => this.#list(parts).every((part) => part === true),
    "Fn::Or": (parts: CfnValue[]) => this.#list(parts).some((part) => part === true),
    "Fn::Split": ([separator, text]: [string, CfnValue]) =>
      String(this.value(text)).split(separator),
    "Fn::Select": ([index, list]: [number, CfnValue]) =>
      (this.value(list) as readonly string[])[index],
    "Fn::Sub": (text: string) => this.#substituted(text),
  };

  #substituted(text: string): CfnValue {
    const filled = text.replaceAll(/\$\{([^}!$]+)\}/g, (whole, name: string) => {
      return String(this.#values[name] ?? whole);
    });
    return filled.includes("${") ? { "Fn::Sub": filled } : filled;
  }
}
