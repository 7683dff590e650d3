/** The problems of a manifest, reported all at once. */

import { ValidationError } from "../domain/errors/errors.ts";

/** From the top of the manifest to the place that is wrong. */
export type ProblemPath = readonly string[];

/** One thing that is wrong. */
export interface Problem {
  readonly path: ProblemPath;
  /** The expected and the given value, in words. */
  readonly message: string;
  /** The name itself is wrong, rather than its value. */
  readonly atName?: boolean;
}

/** One thing that is wrong in a text. */
export interface PlacedProblem extends Problem {
  /** From 1; absent when the manifest did not come as text. */
  readonly line?: number;
  readonly column?: number;
}

/** The manifest cannot be used; nothing was read or written. */
export class InvalidManifestError extends ValidationError {
  override readonly code = "ZAEL_INVALID_MANIFEST";

  constructor(readonly problems: readonly PlacedProblem[]) {
    super("manifest", problems.length, problems.map(describeProblem).join("; "));
  }
}

/** Returns `line 3: resources.gpt-4.limits: expected …`. */
function describeProblem({ path, message, line }: PlacedProblem): string {
  const place = line === undefined ? "" : `line ${line}: `;
  const where = path.length === 0 ? "" : `${path.join(".")}: `;
  return `${place}${where}${message}`;
}
