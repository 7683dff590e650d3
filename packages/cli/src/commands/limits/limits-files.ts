/** `limits export`, `validate` and `cfn-template`: files in, files out. */

import { writeFileSync } from "node:fs";
import type { JsonValue } from "@zae-limiter/limiter/domain/json.ts";
import { CommandFailure, leaf } from "../../frame/command.ts";
import { EXIT } from "../../frame/exit-codes.ts";
import { stackNameOf } from "../../store/store-options.ts";
import { counted, warningText } from "../../terminal/limit-text.ts";
import {
  FILE_OPTION,
  type FileOptions,
  FULL_OPTION,
  manifestOf,
  problemLine,
  readManifest,
} from "./limits-file.ts";
import { namesInManifest } from "./limits-warnings.ts";

export const exportFile = leaf<{ file?: string; force?: boolean }>({
  name: "export",
  summary: "writes the file from what is stored",
  details: "Without --file it goes to stdout. Everything stored is in it, managed or not.",
  options: [
    { flags: "-f, --file <path>", text: "where to write it; - is stdout" },
    { flags: "--force", text: "overwrite an existing file" },
  ],
  store: "read",
  examples: ["limits export -f limits.yaml", "limits export -N tenant-a"],
  json: { namespace: "text", file: "text | null", manifest: "object" },
  run: async ({ options, open }) => {
    const repo = await open();
    const [{ exportManifest }, { manifestJson, printManifest }] = await Promise.all([
      import("@zae-limiter/limiter/manifest/export-manifest.ts"),
      import("@zae-limiter/limiter/manifest/print-manifest.ts"),
    ]);
    const manifest = await exportManifest(repo);
    const file = options.file === "-" ? undefined : options.file;
    const text = printManifest(manifest);
    if (file !== undefined) writeNew(file, text, options.force === true);
    return {
      json: () => ({
        namespace: manifest.namespace,
        file: file ?? null,
        manifest: manifestJson(manifest),
      }),
      text: () => (file === undefined ? text.trimEnd() : `Wrote ${file}`),
    };
  },
});

export const validate = leaf<{ file: string }>({
  name: "validate",
  summary: "checks the file, without any store",
  options: [FILE_OPTION],
  examples: ["limits validate -f limits.yaml"],
  json: {
    valid: "boolean",
    problems: [{ line: "number", column: "number", path: "text", message: "text" }],
    warnings: ["text"],
  },
  run: async ({ options: { file }, terminal, json: isJson, note }) => {
    const content = await readManifest(file);
    const problems = "problems" in content ? content.problems : [];
    const warnings = "manifest" in content ? namesInManifest(content.manifest) : [];
    if (!isJson) for (const line of warnings) note(warningText(line));
    const json = (): JsonValue => ({
      valid: problems.length === 0,
      problems: problems.map(({ line = 1, column = 1, path, message }) => ({
        line,
        column,
        path: path.join("."),
        message,
      })),
      warnings,
    });
    if (problems.length === 0) {
      return { json, text: () => `${terminal.palette.good("Valid:")} ${file}` };
    }
    const heading = `${file} has ${counted(problems.length, "problem")}:`;
    const lines = problems.map((problem) => `  ${problemLine(file, problem)}`);
    return { json, text: () => [heading, ...lines].join("\n"), code: EXIT.failed };
  },
});

export const cfnTemplate = leaf<FileOptions & { name?: string; full?: boolean }>({
  name: "cfn-template",
  summary: "prints a CloudFormation template that keeps these limits",
  details: "Its resource is served by the stack of that name, which must have the provisioner.",
  options: [
    FILE_OPTION,
    { ...FULL_OPTION, text: "every update of the stack applies like `limits apply --full`" },
    { flags: "-n, --name <name>", text: "the stack (ZAEL_STACK, else zae-limiter)" },
  ],
  examples: ["limits cfn-template -n my-app -f limits.yaml"],
  json: { AWSTemplateFormatVersion: "text", Description: "text", Resources: "object" },
  run: async (call) => {
    const { options, terminal } = call;
    const stack = stackNameOf(options.name, terminal.env);
    const manifest = await manifestOf(call);
    const { cfnTemplate } = await import("@zae-limiter/limiter/manifest/cfn.ts");
    const { parse } = await import("../../terminal/yaml.ts");
    const text = cfnTemplate(manifest, stack, { full: options.full === true });
    return {
      json: () => parse(text, { stringKeys: true }) as JsonValue,
      text: () => text.trimEnd(),
    };
  },
});

/** Refuses to overwrite a file by default: its comments would be lost. */
function writeNew(file: string, text: string, replace: boolean): void {
  try {
    writeFileSync(file, text, { flag: replace ? "w" : "wx" });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const reason = code === "EEXIST" ? "the file exists; pass --force to overwrite it" : message;
    throw new CommandFailure(`Cannot write ${file}: ${reason}`, 1, { cause: error });
  }
}
