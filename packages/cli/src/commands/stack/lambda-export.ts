/** `stack lambda-export`: the code of a Lambda as a file, for other deployment tools. */

import { CommandFailure, leaf } from "../../frame/command.ts";

const NAMES = ["aggregator", "provisioner"] as const;

export const lambdaExport = leaf<{
  output: string;
  lambda: (typeof NAMES)[number];
  info?: true;
  force?: true;
}>({
  name: "lambda-export",
  summary: "writes the code of a Lambda to a file",
  options: [
    { flags: "-o, --output <file>", text: "the file", default: "lambda.zip" },
    { flags: "--lambda <name>", text: "which one", choices: NAMES, default: "aggregator" },
    { flags: "--info", text: "only show what it contains" },
    { flags: "-f, --force", text: "overwrite an existing file" },
  ],
  examples: ["stack lambda-export --info", "stack lambda-export --output build/lambda.zip --force"],
  json: {
    lambda: "text",
    output: "text | null",
    bytes: "number",
    uncompressed_bytes: "number",
    handler: "text",
    files: ["text"],
  },
  run: async ({ options }) => {
    const { lambdaPackagePath, lambdaPackage } = await import(
      "@zae-limiter/aws/lambda/lambda-package.ts"
    );
    const { lambda } = options;
    const zip = lambdaPackage(lambda);
    const { unzipSync } = await import("fflate");
    const files = unzipSync(new Uint8Array(zip));
    const names = Object.keys(files);
    const uncompressed = Object.values(files).reduce((sum, { length }) => sum + length, 0);
    const output = options.info === true ? null : options.output;
    if (output !== null) await write(output, zip, options.force === true);
    return {
      json: () => ({
        lambda,
        output,
        bytes: zip.length,
        uncompressed_bytes: uncompressed,
        handler: "index.handler",
        files: names,
      }),
      text: () =>
        output === null
          ? [
              `Package of the ${lambda}`,
              `  Path          ${lambdaPackagePath(lambda)}`,
              `  Files         ${names.length} (${names.join(", ")})`,
              `  Uncompressed  ${kilobytes(uncompressed)}`,
              "  Handler       index.handler",
              "  Dependencies  0 (everything is in the bundle)",
            ].join("\n")
          : `✓ ${output}: ${kilobytes(zip.length)}`,
    };
  },
});

function kilobytes(bytes: number): string {
  return `${(bytes / 1024).toFixed(1)} KB`;
}

async function write(path: string, bytes: Uint8Array, force: boolean): Promise<void> {
  const { mkdir, writeFile } = await import("node:fs/promises");
  const { dirname } = await import("node:path");
  try {
    await mkdir(dirname(path), { recursive: true });
    // `wx` checks and writes in one step, so a file created in between is not overwritten.
    await writeFile(path, bytes, { flag: force ? "w" : "wx" });
  } catch (error) {
    const cause = error as NodeJS.ErrnoException;
    const reason =
      cause.code === "EEXIST"
        ? `${path} already exists. Pass --force to overwrite it`
        : `${path} cannot be written: ${cause.message}`;
    throw new CommandFailure(reason, 1, { cause });
  }
}
