/**
 * Checks the address of an answer. CloudFormation passes a signed address of its own bucket in the
 * region of the stack, which is the region of this function. A caller that may invoke the function
 * must not make it write to any other host.
 */

import { isLoopback } from "@zae-limiter/limiter/base/loopback.ts";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";

/** Where this function runs. */
export interface ReplyPlace {
  /** The region of this function, as AWS sets it. */
  readonly region: string | undefined;
  /** The endpoint of the table, where it is not that of AWS. */
  readonly endpoint?: string | undefined;
}

/** Throws unless the address is one of CloudFormation. The message shows the host alone. */
export function checkReplyAddress(address: string, place: ReplyPlace): void {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url !== undefined && isOfCloudFormation(url, place.region ?? "")) return;
  // With a table on this machine, CloudFormation is a test server on this machine, too.
  if (url !== undefined && isLoopback(place.endpoint) && isLoopback(url.origin)) return;
  const host = url?.host ?? "";
  throw new ValidationError(
    "ResponseURL",
    host,
    `expected an https address of CloudFormation in ${place.region ?? "the region"}, got the host "${host}"`,
  );
}

/** `cloudformation-custom-resource-response-useast1.s3.us-east-1.amazonaws.com` and the like. */
function isOfCloudFormation({ protocol, hostname, port }: URL, region: string): boolean {
  if (protocol !== "https:" || port !== "" || !/^[a-z0-9-]+$/.test(region)) return false;
  const bucket = `cloudformation-custom-resource-response-${region.replaceAll("-", "")}`;
  const service = `s3(?:[.-](?:dualstack\\.)?${region})?\\.amazonaws\\.(?:com|com\\.cn|eu)`;
  return new RegExp(`^${bucket}\\.${service}$`).test(hostname);
}
