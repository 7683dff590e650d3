// Takes from one bucket as fast as it can, by each contender in turn, when a message names one.
// Arguments: contenders by name with their addresses, as JSON; calls in flight; connections.

import { CONTENDERS } from "../contenders-postgres.mjs";

const [places, inFlight, connections] = process.argv.slice(2);
/** Sixteen processes on few cores would stay in the interpreter for most of the measurement. */
const WARM_UP_US = 300_000;
const opened = {};
for (const [name, { kind, url }] of Object.entries(JSON.parse(places))) {
  opened[name] = await CONTENDERS[kind](url, Number(connections));
  await opened[name].take("hot");
}

/** Takes from a bucket while a condition holds; returns how often. */
async function takeWhile(isOn, { take }, key) {
  let taken = 0;
  const lane = async () => {
    while (isOn()) {
      await take(key);
      taken += 1;
    }
  };
  await Promise.all(Array.from({ length: Number(inFlight) }, lane));
  return taken;
}

/** Takes for some time, and says how often; without a name, ends. */
async function run({ name, ms }) {
  if (name === undefined) {
    for (const { close } of Object.values(opened)) await close();
    process.disconnect();
    return;
  }
  const until = performance.now() + ms;
  process.send(await takeWhile(() => performance.now() < until, opened[name], "hot"));
}

const { rival: _, ...cold } = opened;
for (const contender of Object.values(cold)) {
  const before = process.cpuUsage().user;
  const isCold = () => process.cpuUsage().user - before < WARM_UP_US;
  await takeWhile(isCold, contender, `own-${process.pid}`);
}
process.on("message", (message) => void run(message));
process.send("ready");
