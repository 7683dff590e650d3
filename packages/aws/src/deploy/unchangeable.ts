/**
 * Properties of resources with a name of their own that AWS cannot change in place. A new value
 * means a new resource, and that cannot be made while the old one has the name; so what is deployed
 * stays as it is.
 */

import { isPlainObject } from "@zae-limiter/limiter/domain/check.ts";
import type { CfnResource, CfnTemplate, CfnValue } from "../template/cfn.ts";

const UNCHANGEABLE: Readonly<Record<string, readonly string[]>> = {
  "AWS::IAM::ManagedPolicy": ["Description"],
  // Only one mapping may lead from a stream to a function. It goes on from where it is anyway.
  "AWS::Lambda::EventSourceMapping": ["StartingPosition"],
};

/** Our template, with what cannot be changed taken from the one that is deployed. */
export function keepUnchangeable(template: CfnTemplate, deployed: object): CfnTemplate {
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

/** Nothing in it is a parameter or a condition of the other template. */
function isSelfContained(value: CfnValue): boolean {
  if (typeof value !== "object") return true;
  const { "Fn::Sub": text, ...rest } = value as Record<string, unknown>;
  return (
    typeof text === "string" && Object.keys(rest).length === 0 && !/\$\{(?!AWS::|!)/.test(text)
  );
}
