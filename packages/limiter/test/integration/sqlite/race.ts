/** Child processes that compete. */

import { expect } from "vitest";
import type { Child } from "./child.ts";

/** Starts all children at the same moment, and collects what they answer. */
export async function race(children: readonly Child[]): Promise<unknown[]> {
  await Promise.all(children.map((child) => child.answer()));
  for (const child of children) child.go();
  const answers = await Promise.all(children.map((child) => child.answer()));
  await Promise.all(children.map((child) => child.ended()));
  expect(children.map((child) => child.complaints).join("")).toBe("");
  return answers;
}
