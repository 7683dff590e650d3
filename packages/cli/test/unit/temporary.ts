/** A SQLite file of a test file's own, for commands that are to find what others have stored. */

import { join } from "node:path";
import { type Captured, type Circumstances, cli } from "@zae-limiter/test-support/captured.ts";
import { temporaryFolder } from "@zae-limiter/test-support/temporary-folder.ts";

/** The folder goes when the tests of the file are done. */
export function temporaryStore() {
  const folder = temporaryFolder();
  const path = join(folder, "limits.db");
  const url = `sqlite:${path}`;
  let namespaces = 0;
  return {
    folder,
    path,
    url,
    /** A namespace that no other test uses; the command works on it, on this file. */
    namespace(circumstances: Circumstances = {}) {
      namespaces += 1;
      const name = `t-${namespaces}`;
      const env = { ZAEL_URL: url, ZAEL_NAMESPACE: name, ...circumstances.env };
      const run = (...args: string[]): Promise<Captured> => cli(args, { ...circumstances, env });
      return {
        name,
        run,
        /** Runs a command under other circumstances. */
        under: (more: Circumstances, ...args: string[]): Promise<Captured> =>
          cli(args, { ...circumstances, ...more, env: { ...env, ...more.env } }),
        /** Returns the output of `--json`; the command must succeed. */
        async json<T = unknown>(...args: string[]): Promise<T> {
          const { code, out, err } = await run(...args, "--json");
          if (code !== 0) throw new Error(`${args.join(" ")} ended with ${code}: ${err}`);
          return JSON.parse(out) as T;
        },
      };
    },
  };
}
