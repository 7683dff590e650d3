/** The request of CloudFormation to a custom resource. */

import { isPlainObject, show } from "@zae-limiter/limiter/domain/check.ts";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";

const REQUEST_TYPES = ["Create", "Update", "Delete"] as const;
type RequestType = (typeof REQUEST_TYPES)[number];

/** The request, as CloudFormation sends it; its words are not ours. */
export interface LimitsRequest {
  readonly RequestType: RequestType;
  /** A presigned address: it allows to answer in our place, so it is never logged. */
  readonly ResponseURL: string;
  readonly StackId: string;
  readonly RequestId: string;
  readonly LogicalResourceId: string;
  /** Not in a request to create. */
  readonly PhysicalResourceId?: string;
  readonly ResourceProperties: Readonly<Record<string, unknown>>;
}

const TEXTS = ["ResponseURL", "StackId", "RequestId", "LogicalResourceId"] as const;

/** Throws for an event that is no request: it has no address to answer to. */
export function checkRequest(event: unknown): LimitsRequest {
  if (!isPlainObject(event)) {
    throw new ValidationError("event", event, `expected a request, got ${show(event)}`);
  }
  if (!REQUEST_TYPES.includes(event.RequestType as RequestType)) {
    const types = REQUEST_TYPES.join(", ");
    const reason = `expected a request of CloudFormation (${types}), got ${show(event.RequestType)}`;
    throw new ValidationError("RequestType", event.RequestType, reason);
  }
  for (const name of TEXTS) {
    if (typeof event[name] === "string" && event[name] !== "") continue;
    throw new ValidationError(name, event[name], `expected text, got ${show(event[name])}`);
  }
  const { ResourceProperties: properties = {} } = event;
  if (!isPlainObject(properties)) {
    const reason = `expected properties, got ${show(properties)}`;
    throw new ValidationError("ResourceProperties", properties, reason);
  }
  return { ...event, ResourceProperties: properties } as unknown as LimitsRequest;
}
