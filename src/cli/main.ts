#!/usr/bin/env node
/** The command `zae-limiter`: connects the program to this process. */

import { paletteFor } from "./palette.ts";
import { runProgram } from "./program.ts";

// The AWS SDK, which is loaded later if at all, warns about versions of Node that we support.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED = "true";

// A reader that has seen enough, such as `head`, closes the pipe. That is no error of ours, and
// the command goes on to its end, because it may have something to clean up.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
});

process.exitCode = await runProgram(process.argv.slice(2), {
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
  palette: paletteFor(process.stdout.isTTY, process.env.NO_COLOR),
});
