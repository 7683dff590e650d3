/** For tests of code that uses the limiter: a clock that stands still, and a table that fails. */

export { seededRandom } from "./chance.ts";
export { runScenario, type ScenarioOptions } from "./scenarios/run.ts";
export type { Scenario, ScenarioReport, SecondReport } from "./scenarios/scenario.ts";
export { SCENARIOS } from "./scenarios/scenarios.ts";
export { type SeedsOptions, type SeedsReport, simulateSeeds } from "./simulation/seeds.ts";
export { type Shrunk, shrink } from "./simulation/shrink.ts";
export type { RunReport } from "./simulation/simulation.ts";
export { WORLD_NAMES, type WorldName } from "./simulation/worlds.ts";
export type { Faults } from "./table/faults.ts";
export type { Throughput } from "./table/key-ranges.ts";
export type { Latency } from "./table/latency.ts";
export type { Prices } from "./table/prices.ts";
export type {
  ProcessOpenOptions,
  ProcessOptions,
  SimulatedProcess,
} from "./table/simulated-process.ts";
export { SimulatedTable, type SimulatedTableOptions } from "./table/simulated-table.ts";
export type { Usage } from "./table/usage.ts";
export { VirtualTime } from "./time/virtual-time.ts";
