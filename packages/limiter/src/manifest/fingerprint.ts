/**
 * One text and one number for everything a manifest says, however its file is written. Text and
 * number are those of the Python library, so that both agree whether a manifest is already applied.
 */

import { createHash } from "node:crypto";
import { fullLevelData, type Manifest, manifestData } from "./manifest.ts";

/** Returns `sha256:` and 64 digits. */
export function fingerprintOf(manifest: Manifest): string {
  const text = sortedJson(manifestData(manifest, fullLevelData));
  return `sha256:${createHash("sha256").update(text).digest("hex")}`;
}

/** Returns JSON as Python writes it: names sorted, a space after `,` and `:`, only ASCII. */
function sortedJson(value: unknown): string {
  if (typeof value !== "object" || value === null) return ascii(JSON.stringify(value));
  if (Array.isArray(value)) return `[${value.map(sortedJson).join(", ")}]`;
  const entries = value instanceof Map ? [...value] : Object.entries(value);
  const members = entries.sort(([a], [b]) => (a < b ? -1 : 1));
  const texts = members.map(
    ([name, part]) => `${ascii(JSON.stringify(name))}: ${sortedJson(part)}`,
  );
  return `{${texts.join(", ")}}`;
}

function ascii(text: string): string {
  return text.replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
