/**
 * The physical id of a resource in CloudFormation: `{table}/{namespace id}/{resource}@{stack}`.
 *
 * It says which resource of which stack it is. If it were the namespace alone, a resource that gets
 * another logical id would be taken for its successor, and deleting the one, which CloudFormation
 * does last, would delete the limits of the other.
 */

import type { LimitsRequest } from "./request.ts";

/** No id of a namespace is that short. */
const NO_NAMESPACE = "none";

export function physicalId(table: string, namespaceId: string, request: LimitsRequest): string {
  const { LogicalResourceId, StackId } = request;
  const stack = StackId.slice(StackId.lastIndexOf("/") + 1);
  return `${table}/${namespaceId}/${LogicalResourceId}@${stack}`;
}

/** Returns the namespace that a resource was made for; `undefined` for a name of another form. */
export function namespaceIdIn(table: string, id: string): string | undefined {
  const [ofTable, namespaceId, rest] = id.split("/");
  return ofTable === table && rest !== undefined ? namespaceId : undefined;
}

/** Returns whether an id is of the Python library, which has one for all of a namespace. */
export function isForeign(id: string): boolean {
  return !id.includes("@");
}

/** Returns the name of a resource that could not be created. */
export function unmadeId(table: string, request: LimitsRequest): string {
  return physicalId(table, NO_NAMESPACE, request);
}

export function isUnmade(id: string): boolean {
  return id.split("/")[1] === NO_NAMESPACE;
}
