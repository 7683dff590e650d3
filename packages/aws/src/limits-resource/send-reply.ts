/** Puts the answer where CloudFormation looks for it. Without one it waits for an hour. */

import type { Timer } from "@zae-limiter/limiter/base/time.ts";
import { InfrastructureError } from "@zae-limiter/limiter/domain/errors/errors.ts";

const ATTEMPTS_MAX = 6;
const FIRST_PAUSE_MS = 200;
const ATTEMPT_MS = 10_000;

/**
 * Sends the answer, and again while that may help. Throws when it does not: then Lambda calls the
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
