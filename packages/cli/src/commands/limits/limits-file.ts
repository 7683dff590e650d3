/** Reads the file of `limits`, and reports what is wrong with it, with its line. */

import { readFileSync } from "node:fs";
import type { Manifest } from "@zae-limiter/limiter/manifest/manifest.ts";
import type { PlacedProblem } from "@zae-limiter/limiter/manifest/problem.ts";
import { type Call, CommandFailure, type OptionSpec, UsageError } from "../../frame/command.ts";
import { counted } from "../../terminal/limit-text.ts";

export const FILE_OPTION: OptionSpec = {
  flags: "-f, --file <path>",
  text: "the manifest; - reads it from stdin",
  required: true,
};

export interface FileOptions {
  readonly file: string;
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
export async function manifestOf({ options, json, note }: Call<FileOptions>): Promise<Manifest> {
  const { file, namespace } = options;
  const content = await readManifest(file);
  if ("problems" in content) {
    const lines = content.problems.map((problem) => problemLine(file, problem));
    if (json) throw new CommandFailure(lines.join("; "));
    for (const line of lines) note(line);
    throw new CommandFailure(
      `${file} has ${counted(lines.length, "problem")}; nothing was read from the store or written`,
    );
  }
  const { manifest } = content;
  if (namespace !== undefined && namespace !== manifest.namespace) {
    throw new UsageError(
      `--namespace says "${namespace}" and the file "${manifest.namespace}"; leave --namespace out`,
    );
  }
  return manifest;
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
