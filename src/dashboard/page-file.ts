/** The page: one compressed HTML file, built with this code and shipped next to it. */

import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { InfrastructureError } from "../domain/errors.ts";
import { cspHash } from "./digest.ts";

/** The page and the policy that lets exactly its own script and style run. */
export interface Page {
  readonly html: string;
  readonly policy: string;
}

/** Reads a page from the first of the places that has it; `name` is the page in an error. */
export function readPage(name: string, places: readonly string[], from: string): Page {
  const path = places.map((place) => fileURLToPath(new URL(place, from))).find(existsSync);
  if (path === undefined) {
    throw new InfrastructureError(
      `${name} is not in this installation: install zae-limiter again, or run npm run build in a ` +
        "checkout of it",
    );
  }
  const html = gunzipSync(readFileSync(path)).toString("utf8");
  return { html, policy: policyOf(html) };
}

/** Returns the Content-Security-Policy of a page whose only script and style are inline. */
export function policyOf(html: string): string {
  const hashesOf = (tag: string) =>
    [...html.matchAll(new RegExp(`<${tag}[^>]*>([\\s\\S]*?)</${tag}>`, "g"))]
      .map(([, text = ""]) => cspHash(text))
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
