// One process that holds slots for random lengths, and takes a seat for each: there are as many
// seats as slots, so that a process finds none where more slots are held than there are.
// Arguments: the built package, the address of the store, the folder of the seats, the number of
// seats, the id of this process, how many calls it makes, how many at once, the expiry of its slots
// in seconds, and the grant after which it stops itself, outside of any transaction.

import { readlinkSync, symlinkSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { startingShot } from "../sqlite/starting-shot.mjs";

const [, , index, url, folder, seats, id, calls, atOnce, expirySeconds, stopAt] = process.argv;
const { RateLimiter } = await import(index);
/** Rounds over all seats before there is none: another process may move while they are visited. */
const ROUNDS = 2000;

let lost = 0;
let begun = 0;
const report = { granted: 0, refused: 0, seatless: 0, lost: 0 };
const limiter = await RateLimiter.open(url, {
  // Longer than a process is stopped: its calls go on where they were.
  timeoutMs: 120_000,
  slotExpirySeconds: Number(expirySeconds),
  onWarning: (warning) => {
    if (warning.kind === "slots_lost") lost += warning.slots;
  },
});
const call = { entityId: "hot", resource: "api", consume: { parallel: 1, calls: 1 } };

/** Takes a seat that no process has; a link is made at once with the name of its owner. */
async function sit() {
  const first = Math.floor(Math.random() * Number(seats));
  for (let round = 0; round < ROUNDS; round += 1) {
    for (let at = 0; at < Number(seats); at += 1) {
      const seat = join(folder, String((first + at) % Number(seats)));
      try {
        symlinkSync(id, seat);
        return seat;
      } catch {
        // Another process has it.
      }
    }
    await setImmediate();
  }
  return undefined;
}

function leave(seat) {
  try {
    // The parent has removed it where this process was stopped, and another process may have it.
    if (readlinkSync(seat) === id) unlinkSync(seat);
  } catch {
    // It is free.
  }
}

/** Returns the lease of a call, which is refused as long as there is no slot. */
async function granted() {
  for (;;) {
    const decision = await limiter.tryAcquire(call);
    if (decision.granted) return decision.lease;
    report.refused += 1;
    await setImmediate();
  }
}

/** Holds a slot for a random time, on a seat. */
async function hold(lease) {
  const seat = await sit();
  if (seat === undefined) report.seatless += 1;
  for (let turns = Math.random() * 20; turns > 0; turns -= 1) await setImmediate();
  if (seat !== undefined) leave(seat);
  await lease.commit();
}

async function work() {
  while (begun < Number(calls)) {
    begun += 1;
    await hold(await granted());
    report.granted += 1;
    if (report.granted % 20 === 0) process.stdout.write(`${report.granted}\n`);
    if (report.granted === Number(stopAt)) process.kill(process.pid, "SIGSTOP");
  }
}

await startingShot();
await Promise.all(Array.from({ length: Number(atOnce) }, work));
await limiter.close();
process.stdout.write(`${JSON.stringify({ ...report, lost })}\n`);
