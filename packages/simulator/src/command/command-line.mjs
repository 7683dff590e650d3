/** The options of the simulator's command line. */

import { parseArgs } from "node:util";

export const USAGE = `Usage: npm run simulate -- [options]

  --seed N          the first seed (default 1)
  --runs M          how many seeds (default 20)
  --world NAME      what the runs look for; "all" for one world after the other (default any)
  --count-refusals  count wrong refusals; without it each of them breaks a rule
  --minutes T       virtual minutes of each run (default: the seed decides, 0.25 to 2)
  --scenario NAME   a scenario of the scale report instead; "all" for each of them
  --seconds S       virtual seconds of the scenario (default: its own)
  --json            results as JSON on standard output
  --keep-going      go on after a seed that fails
  --help            this text

Ends with 0 when all is well, 1 when a rule was broken, 2 for wrong options.`;

const OPTIONS = {
  seed: { type: "string" },
  runs: { type: "string" },
  minutes: { type: "string" },
  world: { type: "string" },
  "count-refusals": { type: "boolean" },
  scenario: { type: "string" },
  seconds: { type: "string" },
  json: { type: "boolean", default: false },
  "keep-going": { type: "boolean", default: false },
  help: { type: "boolean", default: false },
};

export const CommandLine = {
  /** Parses the options; the result has `error` when they are wrong. */
  parse(args) {
    try {
      const { values } = parseArgs({ args, options: OPTIONS, allowPositionals: false });
      const forSeeds = values.runs ?? values.minutes ?? values.world;
      if (values.scenario !== undefined && forSeeds !== undefined) {
        throw new Error("--runs, --minutes and --world are for seeds, and a scenario has none");
      }
      if (values.scenario === undefined && values.seconds !== undefined) {
        throw new Error("--seconds is for a scenario");
      }
      return {
        help: values.help,
        json: values.json,
        keepGoing: values["keep-going"],
        scenario: values.scenario,
        seed: whole("--seed", values.seed ?? "1", 0),
        runs: whole("--runs", values.runs ?? "20", 1),
        minutes: positive("--minutes", values.minutes),
        world: values.world ?? "any",
        judgesRefusals: values["count-refusals"] !== true,
        seconds: positive("--seconds", values.seconds),
      };
    } catch (error) {
      return { error: error.message };
    }
  },
};

function whole(name, text, least) {
  const value = /^[0-9]+$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isSafeInteger(value) && value >= least) return value;
  throw new Error(`${name}: expected a whole number, at least ${least}, got "${text}"`);
}

function positive(name, text) {
  if (text === undefined) return undefined;
  const value = /^[0-9]*\.?[0-9]+$/.test(text) ? Number(text) : Number.NaN;
  if (value > 0) return value;
  throw new Error(`${name}: expected a number above 0, got "${text}"`);
}
