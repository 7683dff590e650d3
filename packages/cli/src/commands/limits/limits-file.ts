/** Reads the file of `limits`, and reports what is wrong with it, with its line. */

import { readFileSync } from "node:fs";
import type { Manifest } from "@zae-limiter/limiter/manifest/manifest.ts";
import type { PlacedProblem } from "@zae-limiter/limiter/manifest/problem.ts";
import { type Call, CommandFailure, type OptionSpec, UsageError } from "../../frame/command.ts";
import { counted } from "../../terminal/limit-text.ts";

/** Repairs what an interrupted sweep has left behind. */
export const FULL_OPTION: OptionSpec = {
  flags: "--full",
  text: "write every declared entry, not only those that differ, and stamp live buckets again",
};

/** Leaves out the line for each change. */
export const QUIET_OPTION: OptionSpec = {
  flags: "-q, --quiet",
  text: "print the summary only, without a line for each change",
};

export const FILE_OPTION: OptionSpec = {
  flags: "-f, --file <path>",
  text: "the manifest; - reads it from stdin",
  required: true,
};

export interface QuietOptions {
  readonly quiet?: boolean;
}

export interface FileOptions {
  readonly file: string;
  /** Says the same as `replace_kind: true` in the file. */
  readonly replaceKind?: boolean;
  /** Among the options of the store. */
  readonly namespace?: string;
}

/** The content of a file, or its problems. */
type FileContent =
  | { readonly manifest: Manifest }
  | { readonly problems: readonly PlacedProblem[] };

export async function readManifest(file: string): Promise<FileContent> {
  const text = textOf(file);
  const [{ parseManifest }, { InvalidManifestError }] = await Promise.all([
    import("@zae-limiter/limiter/manifest/parse-manifest.ts"),
    import("@zae-limiter/limiter/manifest/problem.ts"),
  ]);
  try {
    return { manifest: parseManifest(text) };
  } catch (error) {
    if (error instanceof InvalidManifestError) return { problems: error.problems };
    throw error;
  }
}

/** Returns the manifest of a command that cannot work without one. */
export async function manifestOf(call: Call<FileOptions>): Promise<Manifest> {
  const { options } = call;
  const { file, namespace } = options;
  const content = await readManifest(file);
  if ("problems" in content) {
    throw refusedFile(call, content.problems, "nothing was read from the store or written");
  }
  const { manifest } = content;
  if (namespace !== undefined && namespace !== manifest.namespace) {
    throw new UsageError(
      `--namespace says "${namespace}" and the file "${manifest.namespace}"; leave --namespace out`,
    );
  }
  return options.replaceKind === true ? { ...manifest, replaceKind: true } : manifest;
}

/** Runs work that compares the file with the store, and reports problems that only then show. */
export async function comparing<Result>(
  call: Call<FileOptions>,
  work: () => Promise<Result>,
): Promise<Result> {
  const { InvalidManifestError } = await import("@zae-limiter/limiter/manifest/problem.ts");
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof InvalidManifestError)) throw error;
    throw refusedFile(call, error.problems, "no limits or entities were written");
  }
}

/** Returns the failure of a command whose file has problems; a person gets a line for each. */
function refusedFile(
  { options: { file }, json, note }: Call<FileOptions>,
  problems: readonly PlacedProblem[],
  rest: string,
): CommandFailure {
  const lines = problems.map((problem) => problemLine(file, problem));
  if (json) return new CommandFailure(lines.join("; "));
  for (const line of lines) note(line);
  return new CommandFailure(`${file} has ${counted(lines.length, "problem")}; ${rest}`);
}

/** Returns `limits.yaml:12:5: resources.gpt-4: expected …`, which editors and terminals link. */
export function problemLine(file: string, { line, column, path, message }: PlacedProblem): string {
  const where = path.length === 0 ? "" : `${path.join(".")}: `;
  return `${file}:${line ?? 1}:${column ?? 1}: ${where}${message}`;
}

/** Returns the text of a file; `-` is stdin. */
export function textOf(file: string): string {
  try {
    return readFileSync(file === "-" ? 0 : file, "utf8");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const reason = code === "ENOENT" ? "there is no such file" : message;
    throw new CommandFailure(`Cannot read ${file}: ${reason}`, 1, { cause: error });
  }
}
