/** `cfn-template`: the template, for pipelines of one's own. */

import { CommandFailure, leaf } from "../command.ts";

export const cfnTemplate = leaf<{ output?: string; format: "yaml" | "json" }>({
  name: "cfn-template",
  summary: "prints the CloudFormation template",
  options: [
    { flags: "-o, --output <file>", text: "writes it to a file instead" },
    {
      flags: "--format <format>",
      text: "how it is written",
      choices: ["yaml", "json"],
      default: "yaml",
    },
  ],
  examples: ["cfn-template > template.yaml", "cfn-template --format json -o template.json"],
  json: { format: "text", bytes: "number", output: "text | null", template: "text | null" },
  run: async ({ options }) => {
    const { printTemplate, stackTemplate } = await import("../../infra/template/template.ts");
    const { format, output } = options;
    const text = printTemplate(stackTemplate(), format);
    const bytes = Buffer.byteLength(text);
    if (output === undefined) {
      return {
        json: () => ({ format, bytes, output: null, template: text }),
        text: () => text.trimEnd(),
      };
    }
    const { writeFile } = await import("node:fs/promises");
    await writeFile(output, text).catch((cause: Error) => {
      throw new CommandFailure(`${output} cannot be written: ${cause.message}`, 1, { cause });
    });
    return {
      json: () => ({ format, bytes, output, template: null }),
      text: () => `✓ Template written to ${output}`,
    };
  },
});
