#!/usr/bin/env node
/** The command `zae-limiter`: connects the program to this process. */

const args = process.argv.slice(2);

// Asked by scripts and prompts, often: answered before anything else is loaded.
if (args.length === 1 && (args[0] === "--version" || args[0] === "-V")) {
  const { CLIENT_VERSION } = await import("@zae-limiter/limiter/domain/version.ts");
  process.stdout.write(`${CLIENT_VERSION}\n`);
} else {
  // The AWS SDK, which is loaded later if at all, warns about versions of Node that we support.
  process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED = "true";
  const [{ processTerminal }, { runProgram }] = await Promise.all([
    import("./terminal/process-terminal.ts"),
    import("./frame/program.ts"),
  ]);
  process.exitCode = await runProgram(args, processTerminal());
}
