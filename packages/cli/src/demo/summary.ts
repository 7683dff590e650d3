/** The end of the demonstration: what happened, what the store has counted, what to try next. */

import type { AuditEvent } from "@zae-limiter/limiter/records/audit.ts";
import type { UsageSnapshot } from "@zae-limiter/limiter/records/usage/usage-item.ts";
import { programName } from "../frame/hint.ts";
import { withThousands } from "../terminal/numbers.ts";
import type { Terminal } from "../terminal/terminal.ts";
import type { Narrator } from "./narrator.ts";
import { KEYS, PROJECT } from "./project.ts";
import type { Counts, Tally } from "./tally.ts";

const DEFAULT_FILE = "sqlite:.zae-limiter/limits.db";

export function tellSummary(narrator: Narrator, tally: Tally): void {
  narrator.chapter("What happened: tokens as estimated, and as used");
  narrator.table(
    [
      ["key", "answered", "refused", "failed", "estimated", "used"],
      ...KEYS.map((key) => [key, ...numbers(tally.of(key))]),
      ["together", ...numbers(tally.total)],
    ],
    "numbers",
  );
  const { estimated, used } = tally.total;
  const off = withThousands(Math.abs(used - estimated));
  narrator.say(
    used < estimated
      ? `  The estimates were ${off} too high; the corrections have refunded that.`
      : `  The estimates were ${off} too low; the corrections have consumed that.`,
  );
}

export function tellUsage(narrator: Narrator, snapshots: readonly UsageSnapshot[]): void {
  narrator.chapter("What the store has counted and written down, read back from it");
  const order: readonly string[] = [...KEYS, PROJECT];
  const rows = [...snapshots]
    .sort((a, b) => order.indexOf(a.entityId) - order.indexOf(b.entityId))
    .map(({ entityId, counters: { rpm = 0, tpm = 0 }, windowStart }) => [
      entityId,
      withThousands(rpm),
      withThousands(tpm),
      windowStart,
    ]);
  narrator.table([["entity", "requests", "tokens", "hour"], ...rows], "numbers");
}

export function tellAudit(narrator: Narrator, events: readonly AuditEvent[]): void {
  narrator.say("");
  narrator.table([
    ["audit log of batch", "by", "at"],
    ...events.map(({ action, principal = "", timestamp }) => [action, principal, timestamp]),
  ]);
}

/** Commands that work where the demonstration was started, and what they do. */
export function nextSteps(
  env: Terminal["env"],
): readonly (readonly [command: string, does: string])[] {
  const program = programName(env);
  // The store in the environment may be that of a whole company; these commands only try things
  // out.
  const url = isSet(env.ZAEL_URL) || isSet(env.ZAEL_STACK) ? ` --url ${DEFAULT_FILE}` : "";
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

export function tellNext(narrator: Narrator, env: Terminal["env"]): void {
  narrator.chapter("What to try next, on a file in this folder");
  for (const [command, does] of nextSteps(env)) {
    narrator.say(`  ${narrator.palette.faint(`# ${does}`)}\n  ${command}`);
  }
}

function numbers({ answered, refused, failed, estimated, used }: Counts): string[] {
  return [answered, refused, failed, estimated, used].map(withThousands);
}

function isSet(value: string | undefined): boolean {
  return (value ?? "") !== "";
}
