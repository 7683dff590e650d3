/** Commands that work in the folder where the demo was started, each with its purpose. */

import { programName } from "../frame/hint.ts";
import type { Terminal } from "../terminal/terminal.ts";

const DEFAULT_FILE = "sqlite:.zae-limiter/limits.db";

export function nextSteps(
  env: Terminal["env"],
): readonly (readonly [command: string, does: string])[] {
  const program = programName(env);
  // The store in the environment may be that of a whole company; these commands only try things
  // out.
  const url = env.ZAEL_URL || env.ZAEL_STACK ? ` --url ${DEFAULT_FILE}` : "";
  return [
    [`${program} system set-limits -l rpm:10 -l tpm:5000${url}`, "limits for every entity"],
    [
      `${program} acquire key-1 gpt-4 -c rpm=1 -c tpm=500${url}`,
      "consume; exit code 3 when refused",
    ],
    [`${program} watch key-1 gpt-4${url}`, "live, in another terminal"],
    [`${program} usage list -e key-1 -w hourly${url}`, "what was consumed"],
    [`${program} limits export -f limits.yaml${url}`, "all limits as a file, to change and apply"],
    [`${program} --help`, "everything else"],
  ];
}
