/**
 * The table of a stack that is there already. Keys and indexes cannot be changed in place: a
 * different shape would mean a new, empty table. So an update keeps the shape that is deployed, and
 * the logical id, which is that of the Python library where it made the stack.
 */

import { parseDocument, type Tags, type YAMLSeq } from "yaml";
import { isPlainObject } from "../domain/check.ts";
import type { Aws } from "./aws.ts";
import type { CfnTemplate, CfnValue } from "./template/cfn.ts";
import { TABLE, type TableShape } from "./template/table.ts";
import { stackTemplate } from "./template/template.ts";

interface DeployedTable {
  readonly id: string;
  readonly properties: Readonly<Record<string, CfnValue>>;
}

const TABLE_TYPE = "AWS::DynamoDB::Table";

/** The template for a stack that is there: ours, around the table that it has. */
export async function templateAround(aws: Aws, stackName: string): Promise<CfnTemplate> {
  const { TemplateBody = "" } = await aws.send("cloudformation:GetTemplate", {
    StackName: stackName,
    TemplateStage: "Original",
  });
  const table = findTable(parseTemplate(TemplateBody));
  if (table === undefined || table.id === TABLE) return stackTemplate();
  return renamed(stackTemplate(shapeOf(table)), table.id);
}

function shapeOf({ properties }: DeployedTable): TableShape {
  const { AttributeDefinitions, KeySchema, GlobalSecondaryIndexes, LocalSecondaryIndexes } =
    properties;
  return {
    AttributeDefinitions: AttributeDefinitions ?? [],
    KeySchema: KeySchema ?? [],
    GlobalSecondaryIndexes: GlobalSecondaryIndexes ?? [],
    ...(LocalSecondaryIndexes === undefined ? {} : { LocalSecondaryIndexes }),
  };
}

function findTable(template: unknown): DeployedTable | undefined {
  const resources = isPlainObject(template) ? template.Resources : undefined;
  if (!isPlainObject(resources)) return undefined;
  for (const [id, resource] of Object.entries(resources)) {
    if (!isPlainObject(resource) || resource.Type !== TABLE_TYPE) continue;
    return { id, properties: resource.Properties as DeployedTable["properties"] };
  }
  return undefined;
}

/** The same template with another logical id for the table, wherever it is mentioned. */
function renamed(template: CfnTemplate, id: string): CfnTemplate {
  const text = JSON.stringify(template).replaceAll(new RegExp(`\\b${TABLE}\\b`, "g"), id);
  return JSON.parse(text) as CfnTemplate;
}

/** JSON or YAML; functions may be written as tags. */
function parseTemplate(text: string): unknown {
  const names = ["Ref", "Condition"];
  const functions = ["Sub", "GetAtt", "If", "Equals", "And", "Or", "Not", "Select", "Split"];
  const more = ["Join", "ImportValue", "FindInMap", "Base64", "GetAZs", "Cidr"];
  const customTags: Tags = [...names, ...functions, ...more].flatMap((name) => {
    const key = names.includes(name) ? name : `Fn::${name}`;
    return [
      { tag: `!${name}`, resolve: (value: string) => ({ [key]: value }) },
      {
        tag: `!${name}`,
        collection: "seq" as const,
        resolve: (value: unknown) => ({ [key]: (value as YAMLSeq).toJSON() }) as never,
      },
    ];
  });
  return parseDocument(text, { customTags, logLevel: "silent" }).toJS();
}
