/** The answer to CloudFormation, as text that is not too long for it. */

import type { LimitsRequest } from "./request.ts";

const BYTES_MAX = 4096;
const CUT = " …";

export interface Outcome {
  readonly physicalId: string;
  /** Why it failed; absent when it did not. */
  readonly failure?: string;
  /** For `Fn::GetAtt`. */
  readonly data?: Readonly<Record<string, string | number>>;
}

export function replyText(request: LimitsRequest, outcome: Outcome): string {
  const { failure, physicalId, data } = outcome;
  const text = (reason: string | undefined) =>
    JSON.stringify({
      Status: failure === undefined ? "SUCCESS" : "FAILED",
      // What is undefined is left out of JSON.
      Reason: reason,
      PhysicalResourceId: physicalId,
      StackId: request.StackId,
      RequestId: request.RequestId,
      LogicalResourceId: request.LogicalResourceId,
      Data: data,
    });
  const whole = text(failure);
  if (failure === undefined || Buffer.byteLength(whole) <= BYTES_MAX) return whole;
  // A character takes up to twelve bytes in JSON, so the reason is shortened until it fits.
  let length = failure.length;
  let cut = whole;
  while (Buffer.byteLength(cut) > BYTES_MAX && length > 0) {
    length = Math.floor(length * 0.9);
    cut = text(wholeCharacters(failure.slice(0, length)) + CUT);
  }
  return cut;
}

/** Without half a character at the end. */
function wholeCharacters(text: string): string {
  return /[\ud800-\udbff]$/.test(text) ? text.slice(0, -1) : text;
}
