/** Runs seeds, shows how far it is, and shrinks what fails. */

const PROGRESS_MS = 1000;

export async function runSeeds(simulator, options, isStopped) {
  const { seed, runs, minutes, world, judgesRefusals, json, keepGoing } = options;
  const say = (text) => console.error(text);
  const worlds = [...simulator.WORLD_NAMES, "all"];
  if (!worlds.includes(world)) {
    say(`--world: expected ${worlds.join(", ")}, got "${world}"`);
    return 2;
  }
  const length = `${minutes ?? "drawn"} virtual minutes each`;
  say(`Seeds ${seed} to ${seed + runs - 1}, ${length}, world ${world}`);
  const startedAt = performance.now();
  const sums = {
    ...{ runs: 0, calls: 0, events: 0, crashes: 0, splits: 0 },
    ...{ judgedRefusals: 0, wrongRefusals: 0 },
  };
  const failures = [];
  let shownAt = startedAt;
  const onRun = (report) => {
    const nowMs = performance.now();
    if (nowMs - shownAt < PROGRESS_MS) return;
    shownAt = nowMs;
    const seconds = ((nowMs - startedAt) / 1000).toFixed(0);
    say(`  seed ${report.parameters.seed}: ${report.calls} calls, ${seconds} s so far`);
  };
  let next = seed;
  while (next < seed + runs && !isStopped()) {
    const left = seed + runs - next;
    const part = await simulator.simulateSeeds({
      seed: next,
      runs: left,
      minutes,
      world,
      judgesRefusals,
      onRun,
      isStopped,
    });
    for (const name of Object.keys(sums)) sums[name] += part[name];
    next += part.runs;
    if (part.failure === undefined) break;
    failures.push(await explain(simulator, part.failure, options, say, isStopped));
    if (!keepGoing) break;
  }
  const seconds = (performance.now() - startedAt) / 1000;
  const clean = failures.length === 0;
  if (json) console.log(JSON.stringify({ clean, seconds, ...sums, failures }, null, 2));
  else {
    const { calls, events, crashes, splits, judgedRefusals, wrongRefusals } = sums;
    const verdict = clean ? "all clean" : `${failures.length} broke a rule`;
    console.log(
      `${sums.runs} seeds, ${verdict}: ${calls} calls, ${events} events, ${crashes} crashes, ` +
        `${splits} splits, ${wrongRefusals} of ${judgedRefusals} refusals wrong, ` +
        `${seconds.toFixed(1)} s`,
    );
  }
  return clean ? 0 : 1;
}

/** Prints the seed, what it broke, and the simplest run that shows it. */
async function explain(simulator, failure, { minutes }, say, isStopped) {
  const { seed, world } = failure.parameters;
  say(`\nSeed ${seed} of world ${world} broke a rule: ${failure.violation.message}`);
  say(`  parameters: ${JSON.stringify(failure.parameters)}`);
  say("  looking for a shorter run that shows it ...");
  const { report: shortest, lines: log } = await simulator.shrink(failure, isStopped);
  say(`  shortest: ${JSON.stringify(shortest.parameters)}`);
  say(`  ${shortest.violation.message}`);
  for (const line of log) say(`    ${line}`);
  const time = minutes === undefined ? "" : ` --minutes ${minutes}`;
  say(`  again: npm run simulate -- --seed ${seed} --runs 1 --world ${world}${time}\n`);
  return {
    seed,
    world,
    violation: failure.violation.message,
    parameters: failure.parameters,
    hash: failure.hash,
    shortest: { parameters: shortest.parameters, violation: shortest.violation.message, log },
  };
}
