/** The page: one compressed HTML file, built with this code and shipped next to it. */

import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { shippedFile } from "@zae-limiter/limiter/base/shipped-file.ts";
import { InfrastructureError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { cspHash } from "./digest.ts";

/** The page and the policy that lets exactly its own script and style run. */
export interface Page {
  readonly html: string;
  readonly policy: string;
}

/** Reads the page of a room; `name` is the page in an error, `from` the file that asks. */
export function readPage(name: string, room: string, from: string): Page {
  const url = shippedFile(`${room}/page.html.gz`, from);
  if (url === undefined) {
    throw new InfrastructureError(
      `${name} is not in this installation: install zae-limiter again, or run npm run build in a ` +
        "checkout of it",
    );
  }
  const html = gunzipSync(readFileSync(url)).toString("utf8");
  return { html, policy: policyOf(html) };
}

/** Returns the Content-Security-Policy of a page whose only script and style are inline. */
export function policyOf(html: string): string {
  const hashesOf = (tag: string) =>
    html
      .split(`</${tag}>`)
      .slice(0, -1)
      .map((text) => cspHash(text.slice(text.indexOf(">", text.indexOf(`<${tag}`)) + 1)))
      .join(" ");
  return [
    "default-src 'none'",
    `script-src ${hashesOf("script") || "'none'"}`,
    `style-src ${hashesOf("style") || "'none'"}`,
    "connect-src 'self'",
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}
