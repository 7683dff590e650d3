/** Keeps one `Build` for all buckets with the same limits. */

import type { Rate } from "../../core/bucket.ts";
import { matchConfig, sameRate } from "../config-match.ts";
import type { BucketConfig } from "../leg.ts";
import { builtFrom, type EmbeddedBucket } from "./embedded-bucket.ts";
import type { Build, FastConfig, PackedBucket } from "./packed-bucket.ts";

/** Builds are looked up by their text; so many are known at once. */
const BUILDS_MAX = 1000;

export class SharedBuilds {
  readonly #builds = new Map<string, Build>();
  #fast: FastConfig | undefined;

  /** The build of a bucket: the one it had before, where that still is right. */
  of(bucket: EmbeddedBucket, before: Build | undefined): Build {
    if (before !== undefined && isBuild(before, bucket)) return before;
    const { version, source, limits } = bucket;
    const text = JSON.stringify([version, source, limits.map(({ name, rate }) => [name, rate])]);
    const known = this.#builds.get(text);
    if (known !== undefined) return known;
    const build: Build = {
      version,
      source,
      names: limits.map(({ name }) => name),
      rates: limits.map(({ rate }) => rate),
    };
    if (this.#builds.size >= BUILDS_MAX) this.#builds.clear();
    this.#builds.set(text, build);
    return build;
  }

  /** Says that a bucket has the limits in force, where that is so. */
  remember(bucket: PackedBucket, fast: FastConfig, untilMs: number): void {
    if (!isAligned(bucket.build, fast.config)) return;
    if (matchConfig(builtFrom(bucket.unpacked()), fast.config) !== "same") return;
    if (this.#fast === undefined || !isSame(this.#fast, fast)) this.#fast = fast;
    bucket.remember(this.#fast, untilMs);
  }
}

function isBuild(build: Build, { version, source, limits }: EmbeddedBucket): boolean {
  return (
    build.version === version &&
    build.source === source &&
    build.names.length === limits.length &&
    limits.every(
      ({ name, rate }, at) => build.names[at] === name && sameRate(build.rates[at] as Rate, rate),
    )
  );
}

/** Whether amounts in the order of the limits are in the order of the bucket. */
function isAligned({ names }: Build, { limits }: BucketConfig): boolean {
  return names.length === limits.length && limits.every(({ name }, at) => names[at] === name);
}

function isSame(left: FastConfig, right: FastConfig): boolean {
  return (
    left.generation === right.generation &&
    left.config.limits === right.config.limits &&
    left.config.version === right.config.version &&
    left.config.source === right.config.source
  );
}
