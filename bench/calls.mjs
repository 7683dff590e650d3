/** Counts the calls that work makes in the compiled modules, by V8's precise coverage. */

import { Session } from "node:inspector/promises";

/** Folder of the modules of `scripts/compile.mjs bench/dist/modules`, with one folder per room. */
export const MODULES = new URL("./dist/modules/", import.meta.url);

/** Imports a compiled module by its path below `MODULES`. */
export function compiled(path) {
  return import(new URL(path, MODULES).href);
}

/** Returns a function that runs work and returns the functions it called, file by file. */
export async function startCounting() {
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  return async (work) => {
    // Counts start again with every reading.
    await session.post("Profiler.takePreciseCoverage");
    await work();
    const { result } = await session.post("Profiler.takePreciseCoverage");
    return result
      .filter(({ url }) => url.startsWith(MODULES.href))
      .map(calledIn)
      .filter(({ functions }) => functions > 0)
      .sort((one, other) => (one.path < other.path ? -1 : 1));
  };
}

function calledIn({ url, functions }) {
  const called = functions.filter(isCalled);
  return {
    path: url.slice(MODULES.href.length).replace(/js$/, "ts"),
    functions: called.length,
    calls: called.reduce((sum, { ranges: [range] }) => sum + range.count, 0),
  };
}

/** Whether a function ran; the module itself, which begins with the file, is none. */
function isCalled({ functionName, ranges: [range] }) {
  return range.count > 0 && (functionName !== "" || range.startOffset > 0);
}
