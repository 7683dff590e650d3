/**
 * Answers of IAM, as far as our policies go: explicit allows, wildcards, variables for tags of
 * the principal, and the condition operators that occur in them. Whatever it does not know is an
 * error, so that no policy passes because it was not understood.
 */

import type { CfnValue } from "@zae-limiter/aws/template/cfn.ts";
import type { ResolvedTemplate } from "@zae-limiter/aws/template/resolve.ts";
import type { Access } from "./accesses.ts";

interface Statement {
  readonly Effect: string;
  readonly Action: readonly string[];
  readonly Resource: string | readonly string[];
  readonly Condition?: Readonly<
    Record<string, Readonly<Record<string, string | readonly string[]>>>
  >;
}

export type Tags = Readonly<Record<string, string>>;

/** The statements of a managed policy, or of the inline policies of a role. */
export function statementsOf({ Resources }: ResolvedTemplate, id: string): readonly Statement[] {
  const properties = Resources[id]?.Properties as
    | {
        PolicyDocument?: { Statement: CfnValue[] };
        Policies?: { PolicyDocument: { Statement: CfnValue[] } }[];
      }
    | undefined;
  const documents = [
    properties?.PolicyDocument,
    ...(properties?.Policies ?? []).map(({ PolicyDocument }) => PolicyDocument),
  ];
  const statements = documents.flatMap((document) => document?.Statement ?? []);
  if (statements.length === 0) throw new Error(`there is no policy ${id}`);
  return statements.map((statement) => arns(statement) as unknown as Statement);
}

/** The ARNs that AWS would fill in. */
export function arnOf(resource: string, attribute = "Arn"): string {
  return `arn:test:${resource}:${attribute}`;
}

/** Whether a principal with these policies and tags may do it. */
export function isAllowed(statements: readonly Statement[], tags: Tags, access: Access): boolean {
  return statements.some((statement) => {
    if (statement.Effect !== "Allow") throw new Error(`${statement.Effect} is not known here`);
    return (
      statement.Action.some((pattern) => like(pattern, access.action, tags)) &&
      [statement.Resource].flat().some((pattern) => like(pattern, access.resource, tags)) &&
      Object.entries(statement.Condition ?? {}).every(([operator, tests]) =>
        Object.entries(tests).every(([key, values]) =>
          holds(operator, key, [values].flat(), access, tags),
        ),
      )
    );
  });
}

function holds(
  operator: string,
  key: string,
  patterns: readonly string[],
  access: Access,
  tags: Tags,
): boolean {
  if (key !== "dynamodb:LeadingKeys") throw new Error(`the key ${key} is not known here`);
  const values = access.leadingKeys;
  switch (operator) {
    case "Null":
      return (values === undefined) === (patterns[0] === "true");
    case "ForAllValues:StringLike":
      // As in AWS: where there is no value at all, all of them match.
      return (values ?? []).every((value) =>
        patterns.some((pattern) => like(pattern, value, tags)),
      );
    default:
      throw new Error(`the operator ${operator} is not known here`);
  }
}

/** A pattern with a variable that has no value matches nothing. */
function like(pattern: string, value: string, tags: Tags): boolean {
  let missing = false;
  const filled = pattern.replaceAll(/\$\{aws:PrincipalTag\/([^}]+)\}/g, (_, name: string) => {
    missing ||= tags[name] === undefined;
    return tags[name] ?? "";
  });
  if (missing) return false;
  const escaped = filled.replaceAll(/[.+^${}()|[\]\\]/g, "\\$&");
  return new RegExp(`^${escaped.replaceAll("*", ".*").replaceAll("?", ".")}$`, "s").test(value);
}

function arns(value: CfnValue): CfnValue {
  if (Array.isArray(value)) return (value as readonly CfnValue[]).map(arns);
  if (typeof value !== "object") return value;
  const { "Fn::GetAtt": path, "Fn::Sub": text } = value as Record<string, unknown>;
  if (Array.isArray(path)) return arnOf(String(path[0]), String(path[1]));
  if (typeof text === "string") {
    return text.replaceAll(/\$\{(\w+)\.(\w+)\}/g, (_, id: string, name: string) => arnOf(id, name));
  }
  return Object.fromEntries(
    Object.entries(value).map(([name, part]) => [name, arns(part as CfnValue)]),
  );
}
