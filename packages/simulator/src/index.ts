/** The parts of the simulator that its command and the tests use. */

export { runScenario } from "./scenarios/run.ts";
export { SCENARIOS } from "./scenarios/scenarios.ts";
export { simulateSeeds } from "./simulation/seeds.ts";
export { shrink } from "./simulation/shrink.ts";
export { WORLD_NAMES } from "./simulation/worlds.ts";
