/** Which source files run code during some work, by V8's own count of calls. */

import { Session } from "node:inspector/promises";
import { fileURLToPath } from "node:url";

const COMPILED = process.env.ZAEL_COMPILED;
const SOURCES = COMPILED
  ? `${COMPILED}/`
  : fileURLToPath(new URL("../../packages/", import.meta.url));
/** The function around each export by the loader of the tests: reading an import is no call. */
const EXPORT = /^\(\) ?=> ?\{ ?try ?\{ ?return \w+;? ?\} ?catch ?\{ ?\}/;

/** Returns the paths, beginning with their room, sorted. */
export async function filesRun(work: () => Promise<unknown>): Promise<string[]> {
  const session = new Session();
  session.connect();
  await session.post("Debugger.enable");
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  await session.post("Profiler.takePreciseCoverage");
  await work();
  const { result } = await session.post("Profiler.takePreciseCoverage");
  const files: string[] = [];
  for (const { scriptId, url, functions } of result) {
    const path = url.startsWith("file:") ? fileURLToPath(url) : url;
    if (!path.startsWith(SOURCES)) continue;
    const { scriptSource } = await session.post("Debugger.getScriptSource", { scriptId });
    const isRun = functions.some(({ ranges: [range] }) => {
      if (range === undefined || range.count === 0 || range.startOffset === 0) return false;
      return !EXPORT.test(scriptSource.slice(range.startOffset, range.endOffset));
    });
    if (isRun) files.push(path.slice(SOURCES.length).replace("/src/", "/").replace(/\.js$/, ".ts"));
  }
  session.disconnect();
  return files.sort();
}
