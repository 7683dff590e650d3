/** `stack cfn-template`: the template, for other deployment tools. */

import { CommandFailure, leaf } from "../../frame/command.ts";

export const cfnTemplate = leaf<{ output?: string; format: "yaml" | "json" }>({
  name: "cfn-template",
  summary: "prints the CloudFormation template",
  options: [
    { flags: "-o, --output <file>", text: "write it to this file instead" },
    {
      flags: "--format <format>",
      text: "the format",
      choices: ["yaml", "json"],
      default: "yaml",
    },
  ],
  examples: [
    "stack cfn-template > template.yaml",
    "stack cfn-template --format json -o template.json",
  ],
  json: { format: "text", bytes: "number", output: "text | null", template: "text | null" },
  run: async ({ options }) => {
    const { printTemplate, stackTemplate } = await import("@zae-limiter/aws/template/template.ts");
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
