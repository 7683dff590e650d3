/** The answer to CloudFormation: its text, the check of its address, and its delivery. */

import { isLoopback } from "@zae-limiter/limiter/base/loopback.ts";
import type { Timer } from "@zae-limiter/limiter/base/time.ts";
import { InfrastructureError, ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
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

/** Returns a text without half a character at its end. */
function wholeCharacters(text: string): string {
  return /[\ud800-\udbff]$/.test(text) ? text.slice(0, -1) : text;
}

/** The place where this function runs. */
export interface ReplyPlace {
  /** The region of this function, as AWS sets it. */
  readonly region: string | undefined;
  /** The endpoint of the table, where it is not that of AWS. */
  readonly endpoint?: string | undefined;
}

/**
 * Throws unless the address is one of CloudFormation; the message shows the host alone.
 * CloudFormation passes a signed address of its own bucket in the region of the stack, which is the
 * region of this function. A caller that may invoke the function must not make it write to any
 * other host.
 */
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

/**
 * Returns whether a host is
 * `cloudformation-custom-resource-response-useast1.s3.us-east-1.amazonaws.com` or one like it.
 */
function isOfCloudFormation({ protocol, hostname, port }: URL, region: string): boolean {
  if (protocol !== "https:" || port !== "" || !/^[a-z0-9-]+$/.test(region)) return false;
  const bucket = `cloudformation-custom-resource-response-${region.replaceAll("-", "")}`;
  const service = `s3(?:[.-](?:dualstack\\.)?${region})?\\.amazonaws\\.(?:com|com\\.cn|eu)`;
  return new RegExp(`^${bucket}\\.${service}$`).test(hostname);
}

const ATTEMPTS_MAX = 6;
const FIRST_PAUSE_MS = 200;
const ATTEMPT_MS = 10_000;

/**
 * Puts the answer at the address that CloudFormation reads, and again while that may help; without
 * an answer CloudFormation waits for an hour. Throws when it does not help: then Lambda calls the
 * function again, which finds that everything is done.
 */
export async function sendReply(url: string, text: string, timer: Timer): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const failure = await put(url, text, timer);
    if (failure === undefined) return;
    if (attempt === ATTEMPTS_MAX || !failure.mayPass) {
      throw new InfrastructureError(`CloudFormation could not be answered: ${failure.sentence}`);
    }
    await timer.sleep(FIRST_PAUSE_MS * 2 ** (attempt - 1));
  }
}

interface Failure {
  readonly sentence: string;
  /** Another attempt may succeed. */
  readonly mayPass: boolean;
}

async function put(url: string, text: string, timer: Timer): Promise<Failure | undefined> {
  const over = new AbortController();
  const answered = new AbortController();
  void timer.sleep(ATTEMPT_MS, answered.signal).then(() => over.abort());
  try {
    // Sent as bytes: with text, `fetch` would add a content type, and the address is signed without
    // one.
    const body = new TextEncoder().encode(text);
    // A redirect would lead to an address that was not checked.
    const options = { method: "PUT", body, signal: over.signal, redirect: "error" } as const;
    const response = await fetch(url, options);
    await response.arrayBuffer();
    if (response.ok) return undefined;
    const mayPass = response.status >= 500 || response.status === 429;
    return { sentence: `it answered ${response.status}`, mayPass };
  } catch (error) {
    // The message of a failed request may contain its address, which is a secret.
    return { sentence: (error as Error).name, mayPass: true };
  } finally {
    answered.abort();
  }
}
