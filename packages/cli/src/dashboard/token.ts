/** The token of a page that a command serves. */

import { isLoopback } from "@zae-limiter/limiter/base/loopback.ts";
import { UsageError } from "../frame/command.ts";

const TOKEN_MIN = 16;

/** Returns the token as given; refuses a weak one, and none where other machines reach the page. */
export function checkedToken(host: string, token: string | undefined): string | undefined {
  if (token === undefined) {
    const name = host.includes(":") ? `[${host}]` : host;
    if (isLoopback(`http://${name}`)) return undefined;
    throw new UsageError(
      "An address that other machines reach needs --token: pass a secret of at least 16 characters",
    );
  }
  if (/^[\w-]+$/.test(token) && token.length >= TOKEN_MIN) return token;
  throw new UsageError("Expected --token to have at least 16 letters, digits, hyphens and _");
}
