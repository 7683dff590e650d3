/**
 * The order in which vitest starts test files: project by project, and the longest of each first.
 *
 * Without a record of earlier runs, which a fresh clone does not have, vitest starts the largest
 * files first. The ones below are small files that run for long; started last, they would keep one
 * core busy while the other has nothing to do. A worker goes on to the next file only when that is
 * of the same project; otherwise another one starts and loads all modules again.
 */

import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * Projects that wait for engines and processes come first, and the many short files of the unit
 * tests last, so that all cores are busy to the end. The environment of `aws` is made meanwhile.
 */
const PROJECTS = ["browser", "contract", "integration", "aws", "simulation", "unit"];

/** Files that run for longer than their size says: of each project the longest first. */
const LONGEST = [
  "packages/limiter/test/contract/item-store-dynamodb-local.test.ts",
  "packages/limiter/test/contract/limiter/contract-dynamodb-local.test.ts",
  "packages/limiter/test/contract/limiter/contract-dynoxide.test.ts",
  "packages/limiter/test/contract/item-store-variants.test.ts",
  "packages/limiter/test/contract/limiter/shards.test.ts",
  "packages/limiter/test/contract/limiter/unavailability.test.ts",
  "packages/limiter/test/contract/limiter/contract-sqlite.test.ts",
  "packages/limiter/test/contract/limiter/contract.test.ts",
  "packages/limiter/test/contract/item-store.test.ts",
  "test/package/package.test.ts",
  "packages/cli/test/integration/data.test.ts",
  "packages/cli/test/integration/limits.test.ts",
  "packages/limiter/test/integration/many-entities.test.ts",
  "packages/cli/test/integration/local.test.ts",
  "packages/aws/test/integration/aggregator/end-to-end.test.ts",
  "packages/gateway/test/integration/many-streams.test.ts",
  "packages/limiter/test/integration/hot-path.test.ts",
  "packages/cli/test/aws/stack.test.ts",
  "packages/cli/test/aws/tables.test.ts",
  "packages/cli/test/aws/loadtest.test.ts",
  "packages/simulator/test/simulation/seeds.test.ts",
  "packages/simulator/test/simulation/busy.test.ts",
  "packages/simulator/test/simulation/command.test.ts",
  "packages/limiter/test/unit/buckets/race.test.ts",
  "test/examples.test.ts",
  "packages/limiter/test/unit/buckets/model.test.ts",
  "packages/limiter/test/unit/acquire/same-answers.test.ts",
  "packages/limiter/test/unit/core/bucket-properties.test.ts",
];

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.toSorted(
      (one, other) => placeOf(one) - placeOf(other) || rankOf(one) - rankOf(other),
    );
  }
}

/** A project that is not listed comes after those that are. */
function placeOf({ project }: TestSpecification): number {
  const index = PROJECTS.indexOf(project.name);
  return index < 0 ? PROJECTS.length : index;
}

function rankOf({ moduleId }: TestSpecification): number {
  const index = LONGEST.findIndex((path) => moduleId.endsWith(path));
  return index < 0 ? LONGEST.length : index;
}
