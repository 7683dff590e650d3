/**
 * The table of a stack that is there already. Keys and indexes cannot be changed in place: a
 * different shape would mean a new, empty table. So an update keeps the shape that is deployed, and
 * the logical id, which is that of the Python library where it made the stack. Only an index that
 * is missing can be added, and only one at a time.
 */

import { defined } from "@zae-limiter/limiter/base/defined.ts";
import { isPlainObject } from "@zae-limiter/limiter/domain/check.ts";
import { StackOperationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { INDEXES, type IndexDefinition } from "@zae-limiter/limiter/storage/table.ts";
import type { Aws } from "../client/aws.ts";
import { deployedTemplate } from "../deploy/deployed-template.ts";
import type { CfnResource, CfnTemplate, CfnValue } from "../template/cfn.ts";
import {
  attributeDefinitions,
  indexDefinition,
  TABLE,
  type TableShape,
} from "../template/table.ts";
import { stackTemplate } from "../template/template.ts";
import { describeTable, indexesOf } from "./live-table.ts";

/** A table as the template of its stack has it. */
export interface DeployedTable {
  readonly id: string;
  readonly properties: Readonly<Record<string, CfnValue>>;
  /** Never deleted: the table existed before its stack. */
  readonly isKept: boolean;
  /** The whole template, and whether all of it could be parsed. */
  readonly template: object;
  readonly isUnderstood: boolean;
}

const TABLE_TYPE = "AWS::DynamoDB::Table";

/** Returns the table in the template of a stack; `undefined` where there is none. */
export async function deployedTable(
  aws: Aws,
  stackName: string,
): Promise<DeployedTable | undefined> {
  const { template, resources, isUnderstood } = await deployedTemplate(aws, stackName);
  const found = Object.entries(resources).find(([, { Type }]) => Type === TABLE_TYPE);
  if (found === undefined || template === undefined) return undefined;
  const [id, resource] = found;
  const properties = resource.Properties as DeployedTable["properties"];
  return { id, properties, isKept: resource.DeletionPolicy === "Retain", template, isUnderstood };
}

/** Returns the template for an existing stack: ours, around the table that it has. */
export function templateAround(table: DeployedTable | undefined): CfnTemplate {
  if (table === undefined) return stackTemplate();
  const { id, isKept, template } = table;
  const ours =
    id === TABLE
      ? stackTemplate({ isKept })
      : renamed(stackTemplate({ shape: shapeOf(table), isKept }), id);
  return keepUnchangeable(ours, template);
}

/**
 * Returns the first index that neither the template nor the table has: tables from before there
 * were namespaces lack GSI4. An index that was added by hand exists, and adding it again would
 * fail.
 */
export async function missingIndex(
  aws: Aws,
  stackName: string,
  table: DeployedTable | undefined,
): Promise<IndexDefinition | undefined> {
  if (table === undefined) return undefined;
  const missing = INDEXES.filter(({ name }) => !declared(table).includes(name));
  if (missing.length === 0) return undefined;
  const live = await describeTable(aws, stackName);
  return missing.find(({ name }) => live !== undefined && !indexesOf(live).has(name));
}

/** Returns the deployed template with one index more and nothing else. */
export function templateWithIndex(
  stackName: string,
  { id, properties, template, isUnderstood }: DeployedTable,
  index: IndexDefinition,
): object {
  const { GlobalSecondaryIndexes: indexes = [], AttributeDefinitions: attributes } = properties;
  if (!isUnderstood || !Array.isArray(indexes) || !Array.isArray(attributes)) {
    throw new StackOperationError(
      stackName,
      `the table lacks the index ${index.name}, and its template is not one we can change. Add ` +
        `the index (${index.partition}, ${index.sort}, ${index.projection}) in your template first`,
    );
  }
  const known = (attributes as { AttributeName?: string }[]).map((one) => one.AttributeName);
  const news = attributeDefinitions(
    [index.partition, index.sort].filter((n) => !known.includes(n)),
  );
  const { Resources, ...rest } = template as { Resources: Record<string, object> };
  const changed = {
    ...properties,
    AttributeDefinitions: [...attributes, ...news],
    GlobalSecondaryIndexes: [...indexes, indexDefinition(index)],
  };
  return {
    ...rest,
    Resources: { ...Resources, [id]: { ...Resources[id], Properties: changed } },
  };
}

function declared({ properties }: DeployedTable): unknown[] {
  const { GlobalSecondaryIndexes: indexes } = properties;
  return Array.isArray(indexes)
    ? indexes.map((index) => (index as { IndexName?: string }).IndexName)
    : [];
}

function shapeOf({ properties }: DeployedTable): TableShape {
  const { AttributeDefinitions, KeySchema, GlobalSecondaryIndexes, LocalSecondaryIndexes } =
    properties;
  return {
    AttributeDefinitions: AttributeDefinitions ?? [],
    KeySchema: KeySchema ?? [],
    GlobalSecondaryIndexes: GlobalSecondaryIndexes ?? [],
    ...defined({ LocalSecondaryIndexes }),
  };
}

/** Returns a template with another logical id for the table, wherever it is mentioned. */
function renamed(template: CfnTemplate, id: string): CfnTemplate {
  const text = JSON.stringify(template).replaceAll(new RegExp(`\\b${TABLE}\\b`, "g"), id);
  return JSON.parse(text) as CfnTemplate;
}

/**
 * Properties that AWS cannot change in place, of resources with a name of their own. A new value
 * means a new resource, which cannot be made while the old one has the name; so the deployed value
 * is kept.
 */
const UNCHANGEABLE: Readonly<Record<string, readonly string[]>> = {
  "AWS::IAM::ManagedPolicy": ["Description"],
  // Only one mapping may lead from a stream to a function. It goes on from where it is anyway.
  "AWS::Lambda::EventSourceMapping": ["StartingPosition"],
};

/** Returns our template with the unchangeable properties of the deployed one. */
function keepUnchangeable(template: CfnTemplate, deployed: object): CfnTemplate {
  const { Resources: there } = deployed as { Resources?: unknown };
  const kept = Object.entries(template.Resources).map(([id, resource]) => {
    const other = isPlainObject(there) ? there[id] : undefined;
    const isSame = isPlainObject(other) && other.Type === resource.Type;
    return [id, isSame ? withKept(resource, other as unknown as CfnResource) : resource];
  });
  return { ...template, Resources: Object.fromEntries(kept) };
}

function withKept(resource: CfnResource, deployed: CfnResource): CfnResource {
  const properties: Record<string, CfnValue | undefined> = { ...resource.Properties };
  for (const name of UNCHANGEABLE[resource.Type] ?? []) {
    const value = deployed.Properties?.[name];
    if (value === undefined) delete properties[name];
    else if (isSelfContained(value)) properties[name] = value;
  }
  return { ...resource, Properties: properties };
}

/** Returns whether a value uses no parameter and no condition of its template. */
function isSelfContained(value: CfnValue): boolean {
  if (typeof value !== "object") return true;
  const { "Fn::Sub": text, ...rest } = value as Record<string, unknown>;
  return (
    typeof text === "string" && Object.keys(rest).length === 0 && !/\$\{(?!AWS::|!)/.test(text)
  );
}
