/** Scripts of the server, by the digest of their text. */

import { createHash } from "node:crypto";

/** A script: the server keeps its text, and is asked by the digest. */
export interface Script {
  readonly text: string;
  readonly digest: string;
}

/** Makes a script of a text; its comments and indents stay here. */
export function script(source: string): Script {
  const lines = source.split("\n").map((line) => line.trim());
  const text = lines.filter((line) => line !== "" && !line.startsWith("--")).join("\n");
  return { text, digest: createHash("sha1").update(text).digest("hex") };
}
