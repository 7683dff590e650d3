/** The template of an existing stack of any origin. */

import { isPlainObject } from "@zae-limiter/limiter/domain/check.ts";
import { parseDocument, type Tags, type YAMLSeq } from "yaml";
import type { Aws } from "../client/aws.ts";

interface DeployedTemplate {
  /** `undefined` where it could not be read at all. */
  readonly template: object | undefined;
  /** The resources by their logical ids. */
  readonly resources: Readonly<Record<string, DeployedResource>>;
  /** Whether all of it could be parsed. */
  readonly isUnderstood: boolean;
}

export interface DeployedResource {
  readonly Type?: unknown;
  readonly Properties?: unknown;
  readonly DeletionPolicy?: unknown;
}

export async function deployedTemplate(aws: Aws, stackName: string): Promise<DeployedTemplate> {
  const { TemplateBody = "" } = await aws.send("cloudformation:GetTemplate", {
    StackName: stackName,
    TemplateStage: "Original",
  });
  const { template, isUnderstood } = parseTemplate(TemplateBody);
  if (!isPlainObject(template)) return { template: undefined, resources: {}, isUnderstood };
  const { Resources } = template;
  const entries = isPlainObject(Resources) ? Object.entries(Resources) : [];
  const resources = entries.filter(([, resource]) => isPlainObject(resource));
  return { template, resources: Object.fromEntries(resources) as never, isUnderstood };
}

/** Parses JSON or YAML, in which functions may be written as tags. */
function parseTemplate(text: string): { template: unknown; isUnderstood: boolean } {
  const names = ["Ref", "Condition"];
  const functions = ["Sub", "GetAtt", "If", "Equals", "And", "Or", "Not", "Select", "Split"];
  const more = ["Join", "ImportValue", "FindInMap", "Base64", "GetAZs", "Cidr"];
  const customTags: Tags = [...names, ...functions, ...more].flatMap((name) => {
    const key = names.includes(name) ? name : `Fn::${name}`;
    return [
      { tag: `!${name}`, resolve: (value: string) => ({ [key]: argument(name, value) }) },
      {
        tag: `!${name}`,
        collection: "seq" as const,
        resolve: (value: unknown) => ({ [key]: (value as YAMLSeq).toJSON() }) as never,
      },
    ];
  });
  const document = parseDocument(text, { customTags, logLevel: "silent" });
  const { errors, warnings } = document;
  return { template: document.toJS(), isUnderstood: errors.length + warnings.length === 0 };
}

/** Returns the argument of a tag; `!GetAtt Table.Arn` is a list of two everywhere else. */
function argument(name: string, value: string): string | string[] {
  const at = value.indexOf(".");
  return name === "GetAtt" && at > 0 ? [value.slice(0, at), value.slice(at + 1)] : value;
}
