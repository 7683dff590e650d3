/** What the command and the tests use of the simulator. */

export { runScenario } from "./scenarios/run.ts";
export { SCENARIOS } from "./scenarios/scenarios.ts";
export { simulateSeeds } from "./simulation/seeds.ts";
export { shrink } from "./simulation/shrink.ts";
export { WORLD_NAMES } from "./simulation/worlds.ts";
