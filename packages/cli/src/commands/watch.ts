/** `watch`: what is left of the limits of an entity, live, until it is ended. */

import type { StatusRequest } from "@zae-limiter/limiter/acquire/acquire-request.ts";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { systemClock } from "@zae-limiter/limiter/base/time.ts";
import { isoSeconds } from "@zae-limiter/limiter/core/windows.ts";
import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import type { LimitStatus } from "@zae-limiter/limiter/domain/limit-status.ts";
import { type Call, leaf } from "../frame/command.ts";
import { EXIT } from "../frame/exit-codes.ts";
import { CALL_LIMITS_OPTION, callLimits, TARGET_ARGUMENTS } from "../store/consume.ts";
import { bars, STATUS_SHAPE, statusJson } from "../terminal/bars.ts";
import { Drawing } from "../terminal/drawing.ts";
import { type Interrupted, interruptible } from "../terminal/interruption.ts";
import { decimalNumber, wholeNumber } from "../terminal/numbers.ts";

const COUNT_MAX = 1_000_000_000;

interface WatchOptions {
  readonly interval: number;
  readonly count?: number;
  readonly limit: readonly string[];
}

export const watch = leaf<WatchOptions>({
  name: "watch",
  summary: "shows what is left, live",
  details: "Ctrl-C ends it, with 130. With --json, one object per line.",
  arguments: TARGET_ARGUMENTS,
  options: [
    {
      flags: "-i, --interval <seconds>",
      text: "the time between two updates",
      default: 1,
      parse: decimalNumber(0.1, 3600),
    },
    { flags: "--count <n>", text: "end after this many updates", parse: wholeNumber(1, COUNT_MAX) },
    CALL_LIMITS_OPTION,
  ],
  store: "read",
  examples: ["watch key-1 gpt-4", "watch key-1 gpt-4 --json --interval 10"],
  json: {
    at: "text",
    entity_id: "text",
    resource: "text",
    limits: [STATUS_SHAPE],
  },
  run: (call) => interruptible(call.terminal, (signal) => follow(call, signal)),
});

async function follow(call: Call<WatchOptions>, signal: AbortSignal) {
  const { args, options, open, terminal } = call;
  const [entityId = "", resource = ""] = args;
  const request = { entityId, resource, ...callLimits(options) };
  const repository = await open();
  const limiter = new RateLimiter(repository, { totals: true });
  const screen = new Screen(call);
  const { count = Number.POSITIVE_INFINITY } = options;
  try {
    for (let looks = 0; looks < count && !signal.aborted; looks += 1) {
      if (looks > 0) await terminal.timer.sleep(options.interval * 1000, signal);
      if (signal.aborted) break;
      // Shows changes of limits, too.
      repository.limits.invalidateCache();
      screen.show(request, await look(limiter, request, looks === 0));
    }
  } finally {
    screen.leave();
  }
  if (!signal.aborted) return { code: EXIT.ok };
  // The terminal has echoed ^C where the cursor was: the next prompt starts on its own line.
  const isCtrlC = (signal.reason as Interrupted).interruption === "SIGINT";
  if (isCtrlC && terminal.isTerminal && !call.json) terminal.out("\n");
  throw signal.reason;
}

/** Reads the balances. A store that fails to answer does not end the watch, unless it never did. */
async function look(
  limiter: RateLimiter,
  request: StatusRequest,
  isFirst: boolean,
): Promise<readonly LimitStatus[] | undefined> {
  try {
    return await limiter.status(request);
  } catch (error) {
    if (isFirst || !(error instanceof RateLimiterUnavailable)) throw error;
    return undefined;
  }
}

/** Shows the balances, in the form that was asked for. */
class Screen {
  readonly #call: Call<WatchOptions>;
  readonly #drawing: Drawing;

  constructor(call: Call<WatchOptions>) {
    this.#call = call;
    this.#drawing = new Drawing(call.terminal);
  }

  show(request: StatusRequest, statuses: readonly LimitStatus[] | undefined): void {
    const { terminal, json, note } = this.#call;
    const at = isoSeconds((terminal.clock ?? systemClock)());
    if (statuses === undefined) {
      note(`${at} the store does not answer`);
      return;
    }
    if (json) {
      const { entityId, resource } = request;
      const limits = statuses.map(statusJson);
      terminal.out(`${JSON.stringify({ at, entity_id: entityId, resource, limits })}\n`);
      return;
    }
    const heading = terminal.palette.faint(`${request.resource} at ${at}`);
    this.#drawing.draw(`${heading}\n${bars(statuses, terminal)}\n`);
  }

  leave(): void {
    this.#drawing.leave();
  }
}
