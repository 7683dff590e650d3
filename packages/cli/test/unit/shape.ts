/** Compares what `--json` prints with the form that a command promises. */

import type { Group, Shape } from "@zae-limiter/cli/frame/command.ts";
import { expect } from "vitest";

/** Every promised member is there and of its type, and no other is. */
export function expectShape(shape: Shape, value: unknown): void {
  expect(differences(shape, value, "$")).toEqual([]);
}

function differences(shape: Shape, value: unknown, at: string): string[] {
  if (typeof shape === "string") return fits(shape, value) ? [] : [`${at}: expected ${shape}`];
  if (isList(shape)) {
    if (!Array.isArray(value)) return [`${at}: expected an array`];
    return value.flatMap((part, index) => differences(shape[0], part, `${at}[${index}]`));
  }
  if (typeof value !== "object" || value === null) return [`${at}: expected an object`];
  const members = value as Record<string, unknown>;
  const promised = Object.keys(shape).map((name) => name.replace(/\?$/, ""));
  const more = Object.keys(members).filter((name) => !promised.includes(name));
  return [
    ...more.map((name) => `${at}.${name}: not promised`),
    ...Object.entries(shape).flatMap(([key, part]) => {
      const name = key.replace(/\?$/, "");
      if (members[name] === undefined && key.endsWith("?")) return [];
      return differences(part, members[name], `${at}.${name}`);
    }),
  ];
}

/** `text`, `number | null`: names of types. */
function fits(types: string, value: unknown): boolean {
  return types.split(" | ").some((type) => {
    if (type === "null") return value === null;
    if (type === "text") return typeof value === "string";
    if (type === "object") return typeof value === "object" && value !== null;
    return typeof value === type;
  });
}

function isList(shape: Shape): shape is readonly [Shape] {
  return Array.isArray(shape);
}

/** Returns the shape that a command of a group promises. */
export function shapeOf({ commands }: Group, name: string): Shape {
  const found = commands.find((leaf) => leaf.name === name);
  if (found === undefined) throw new Error(`There is no command ${name}`);
  return found.json;
}
