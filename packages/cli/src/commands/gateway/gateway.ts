/** `gateway`: a reverse proxy that enforces limits in front of providers of language models. */

import type { Gateway } from "@zae-limiter/gateway/gateway.ts";
import type { UpstreamSpec } from "@zae-limiter/gateway/upstreams.ts";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { defined } from "@zae-limiter/limiter/base/defined.ts";
import { systemClock } from "@zae-limiter/limiter/base/time.ts";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { checkTag } from "@zae-limiter/limiter/llm/tags.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import { DASHBOARD_PORT } from "../../dashboard/options.ts";
import { type Call, CommandFailure, leaf, UsageError } from "../../frame/command.ts";
import { EXIT } from "../../frame/exit-codes.ts";
import type { StoreOptions } from "../../store/store-options.ts";
import { interruptible } from "../../terminal/interruption.ts";
import { decimalNumber, wholeNumber } from "../../terminal/numbers.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import { addressOf, configOf, pathWarnings, type UpstreamOptions } from "./gateway-upstreams.ts";

interface ServeOptions extends StoreOptions, UpstreamOptions {
  readonly host: string;
  readonly port: number;
  readonly maxWait: number;
  readonly maxBody: number;
  readonly unknownModels: "other" | "refuse";
  readonly allowPath: readonly string[];
  readonly background: "hold" | "refuse";
  readonly unpriced: "refuse" | "allow";
  readonly onUnavailable?: "allow" | "block";
  readonly reserveMoney: "learned" | "max";
  readonly capOutput?: true;
  readonly showAncestors?: true;
  readonly readOn: number;
  readonly accessLog?: string;
  readonly upstreamTimeout: number;
  readonly grace: number;
  readonly dashboard?: true;
  readonly dashboardPort: number;
}

/** The name of stdout as a file. */
const STDOUT = "-";
/** Interruptions at which a gateway goes on, where its log is on stdout. */
const LASTING = ["SIGHUP", "SIGPIPE"] as const;
/** How long the end of a gateway waits for its log, in milliseconds. */
const LOG_MS = 1000;
const MEGABYTE = 1024 * 1024;
/** Within this time a second Ctrl-C counts as the first one: the terminal and npx both send it. */
const ECHO_MS = 500;

export const gateway = leaf<ServeOptions>({
  name: "gateway",
  summary: "a proxy that limits calls to language models",
  details:
    "Clients use a key of `gateway key create` in place of the provider's. The provider's key comes " +
    "from OPENAI_API_KEY or ANTHROPIC_API_KEY, or from the variable that the file names. The " +
    "resource is the model. Ctrl-C and SIGTERM let calls in flight end first; Ctrl-C again breaks " +
    "them off. SIGHUP reopens the access log. /healthz and /metrics need no key.",
  options: [
    { flags: "-u, --upstream <url>", text: "the provider, such as https://api.openai.com/v1" },
    { flags: "--config <file>", text: "several providers by model, in YAML" },
    { flags: "--host <address>", text: "where it listens", default: "127.0.0.1" },
    {
      flags: "--port <number>",
      text: "where it listens; 0 takes a free one",
      default: 8080,
      parse: wholeNumber(0, 65_535),
    },
    { flags: "--open", text: "clients use their own keys of the provider" },
    { flags: "--keyless", text: "the provider of --upstream needs no key, such as Ollama" },
    {
      flags: "--tag <name>",
      text: "a cost centre that the header x-zael-tag may name; repeatable",
      repeat: true,
      parse: tagName,
    },
    {
      flags: "--unknown-models <what>",
      text: "count models that are on no list as the resource other, or refuse them",
      default: "other",
      choices: ["other", "refuse"],
    },
    {
      flags: "--allow-path <prefix>",
      text: "forward paths that begin so, which are refused otherwise; repeatable",
      repeat: true,
      parse: pathPrefix,
    },
    {
      flags: "--background <what>",
      text: "keep the tokens of background responses until their usage is known, or refuse them",
      default: "hold",
      choices: ["hold", "refuse"],
    },
    {
      flags: "--on-unavailable <what>",
      text:
        "while the store is away: block calls, or allow all, uncounted; default: as stored, and " +
        "calls that a limit in money may apply to are blocked",
      choices: ["block", "allow"],
    },
    {
      flags: "--unpriced <what>",
      text: "refuse models without a price where a limit in money applies, or count no money",
      default: "refuse",
      choices: ["refuse", "allow"],
    },
    {
      flags: "--reserve-money <how>",
      text: "reserve money for the output that was learned, or for the most there can be",
      default: "learned",
      choices: ["learned", "max"],
    },
    {
      flags: "--cap-output",
      text: "lower the longest output that a call asks for to what its budgets still pay for",
    },
    {
      flags: "--show-ancestors",
      text: "let keys see the limits of ancestors in GET /v1/usage",
    },
    {
      flags: "--read-on <calls>",
      text: "how many calls are read on at once for their usage after the client hung up",
      default: 100,
      parse: wholeNumber(0, 10_000),
    },
    { flags: "--access-log <file>", text: "write a line of JSON for each call; - is stdout" },
    {
      flags: "--max-wait <seconds>",
      text: "how long a call may wait for tokens",
      default: 0,
      parse: decimalNumber(0, 3600),
    },
    {
      flags: "--max-body <megabytes>",
      text: "the longest body of a request",
      default: 4,
      parse: wholeNumber(1, 1024),
    },
    {
      flags: "--upstream-timeout <seconds>",
      text: "how long a provider may be silent",
      default: 600,
      parse: wholeNumber(1, 86_400),
    },
    {
      flags: "--grace <seconds>",
      text: "how long calls in flight may take to end",
      default: 30,
      parse: wholeNumber(0, 3600),
    },
    { flags: "--dashboard", text: "serve the dashboard too, on 127.0.0.1" },
    {
      flags: "--dashboard-port <number>",
      text: "where the dashboard listens; 0 takes a free one",
      default: DASHBOARD_PORT,
      parse: wholeNumber(0, 65_535),
    },
  ],
  store: "write",
  examples: [
    "gateway --upstream https://api.openai.com/v1",
    "gateway --config upstreams.yaml --name my-app --host 0.0.0.0",
    "gateway --upstream https://api.openai.com/v1 --dashboard",
  ],
  json: {
    url: "text",
    dashboard: "text or null",
    store: "text",
    namespace: "text",
    upstreams: ["text"],
  },
  run: (call) => {
    // A collector of logs that ends must not end the gateway.
    const ignored = call.options.accessLog === STDOUT ? LASTING : (["SIGHUP"] as const);
    return interruptible(call.terminal, (signal) => serve(call, signal), ignored);
  },
});

async function serve(call: Call<ServeOptions>, signal: AbortSignal) {
  const { options } = call;
  const { upstreams, ...config } = await configOf(call);
  const { Gateway: Server } = await import("@zae-limiter/gateway/gateway.ts");
  const { onUnavailable } = options;
  const limiter = new RateLimiter(await call.open("write"), defined({ onUnavailable }));
  const log = await accessLogOf(call);
  const started = Server.start({
    limiter,
    upstreams,
    ...config,
    host: options.host,
    port: options.port,
    isOpen: options.open === true,
    maxWaitSeconds: options.maxWait,
    bodyBytesMax: options.maxBody * MEGABYTE,
    timeoutMs: options.upstreamTimeout * 1000,
    unknownModels: options.unknownModels,
    allowPaths: options.allowPath,
    background: options.background,
    unpriced: options.unpriced,
    passesUncounted: onUnavailable === "allow",
    reserveMoney: options.reserveMoney,
    capOutput: options.capOutput === true,
    showAncestors: options.showAncestors,
    readOnMax: options.readOn,
    accessLog: log?.log,
    tell: call.note,
  });
  const running = await started.catch((error: unknown) => {
    if (error instanceof ValidationError) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    const advice = code === "EADDRINUSE" ? ". Choose another port with --port" : "";
    throw new CommandFailure(`Cannot listen: ${message}${advice}`, 1, { cause: error });
  });
  const board = options.dashboard === true ? await dashboardOf(call, limiter, running) : undefined;
  sayStart(call, limiter, running.url, board?.url, upstreams);
  for (const line of pathWarnings(upstreams)) call.note(line);
  await sayMissing(call, limiter);
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
  call.note("Stopping: calls in flight may end first");
  await board?.close();
  await stop(call, running);
  await log?.close();
  return { code: EXIT.ok };
}

/** Prints where the gateway listens, what it is in front of, and where its limits are. */
function sayStart(
  { json, terminal }: Call<ServeOptions>,
  { repository }: RateLimiter,
  url: string,
  dashboard: string | undefined,
  upstreams: readonly UpstreamSpec[],
): void {
  const store = repository[INTERNALS].storeName;
  const namespace = repository.namespaceName;
  const addresses = upstreams.map((upstream) => addressOf(upstream.url));
  if (json) {
    const start = { url, dashboard: dashboard ?? null, store, namespace, upstreams: addresses };
    terminal.out(`${JSON.stringify(start)}\n`);
    return;
  }
  const place = `the limits of namespace ${namespace} in ${store}`;
  terminal.out(`Listening on ${url}, in front of ${addresses.join(", ")}, with ${place}\n`);
  if (dashboard !== undefined) terminal.out(`Dashboard: ${dashboard}\n`);
}

/** Opens the access log, and reopens it at each SIGHUP. */
async function accessLogOf({ options, terminal, note }: Call<ServeOptions>) {
  const { accessLog: file } = options;
  if (file === undefined) return undefined;
  const { AccessLog } = await import("@zae-limiter/gateway/access-log.ts");
  const rest = { clock: terminal.clock ?? systemClock, tell: note };
  const opened = file === STDOUT ? AccessLog.to(process.stdout, rest) : AccessLog.open(file, rest);
  const log = await Promise.resolve(opened).catch((error: unknown) => {
    throw new CommandFailure(`Cannot open the access log: ${(error as Error).message}`);
  });
  const forget = terminal.onInterruption((interruption) => {
    if (interruption === "SIGHUP") log.reopen();
  });
  const close = async () => {
    forget();
    const written = new AbortController();
    await Promise.race([log.close(), terminal.timer.sleep(LOG_MS, written.signal)]);
    written.abort();
  };
  return { log, close };
}

/** Reads the beginning of a path, which may have no escapes and no query. */
function tagName(text: string): string {
  return checkTag("--tag", text);
}

function pathPrefix(text: string): string {
  if (/^\/[\w.~/-]*$/.test(text) && !text.includes("..")) return text;
  throw new UsageError("expected the beginning of a path, such as /v1/images");
}

/** Says what calls need and the store does not have. */
async function sayMissing(call: Call<ServeOptions>, { repository }: RateLimiter): Promise<void> {
  try {
    const { missingIn } = await import("@zae-limiter/gateway/missing.ts");
    const lines = await missingIn(repository, call.options.open === true, call.hint);
    for (const line of lines) call.note(line);
  } catch (error) {
    // The gateway may be allowed to do less than these reads need, and works without them.
    call.note(`Cannot look for limits and keys in the store: ${(error as Error).message}`);
  }
}

/** Lets calls at work end until the grace is over, or until Ctrl-C is pressed again. */
async function stop({ options, terminal }: Call<ServeOptions>, running: Gateway): Promise<void> {
  const done = new AbortController();
  const deadline = terminal.timer.sleep(options.grace * 1000, done.signal);
  await running.stop(Promise.race([deadline, pressedAgain(terminal, done.signal)]));
  done.abort();
}

/** Waits for another Ctrl-C, or for the signal. */
async function pressedAgain({ timer, onInterruption }: Terminal, signal: AbortSignal) {
  await timer.sleep(ECHO_MS, signal);
  await new Promise<void>((resolve) => {
    const forget = onInterruption((interruption) => interruption === "SIGINT" && resolve());
    if (signal.aborted) forget();
    else signal.addEventListener("abort", forget, { once: true });
  });
}

/** Serves the dashboard with the live refusals of the gateway. */
async function dashboardOf(call: Call<ServeOptions>, limiter: RateLimiter, running: Gateway) {
  const { serveDashboard } = await import("@zae-limiter/dashboard/server/serve.ts");
  const { dashboardPort: port } = call.options;
  const place = { host: "127.0.0.1", port, readOnly: false, limiter };
  try {
    return await serveDashboard(limiter.repository, place);
  } catch (error) {
    await running.stop(Promise.resolve());
    throw error;
  }
}
