/**
 * Copies one namespace, in passes that may be repeated: each compares what it reads with the
 * target, and writes what differs. An interrupted copy therefore goes on with a first pass, which
 * finds what is there already.
 *
 * The passes see both sides at one time: what has expired by then does not count, and shards of a
 * bucket are joined as of then. Tokens are never made: a bucket keeps the level and the time that
 * it has, and shards are joined to the sum of what they hold.
 */

import { CopyRefusedError } from "../domain/errors/copy-refused.ts";
import { AUDIT_RETENTION, SYSTEM_SUBJECT } from "../records/audit.ts";
import { systemConfigKey } from "../records/keys.ts";
import { INTERNALS } from "../repository/internals.ts";
import type { Repository } from "../repository/repository.ts";
import type { Item } from "../storage/item.ts";
import { type BucketPart, bucketPart, newestBase } from "./bucket-part.ts";
import { readMark, removeMark, writeMark } from "./copy-mark.ts";
import type { CopiedNamespace, CopyPhase, CopyProgress } from "./copy-report.ts";
import {
  bringUp,
  compare,
  type PassOptions,
  type PassResult,
  type RowCounts,
  survey,
} from "./passes.ts";
import { recordPart } from "./record-part.ts";
import type { Part, RowKind } from "./side.ts";

/** Attributes of the first config of a namespace, which registering may write. */
const FIRST_CONFIG: ReadonlySet<string> = new Set([
  "PK",
  "SK",
  "GSI4PK",
  "GSI4SK",
  AUDIT_RETENTION,
]);

export interface NamespaceCopyOptions {
  readonly live: boolean;
  readonly principal?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((progress: CopyProgress) => void) | undefined;
}

type Pass = <Row>(part: Part<Row>, options: PassOptions) => Promise<PassResult>;

export class NamespaceCopy {
  readonly #source: Repository;
  readonly #target: Repository;
  readonly #options: NamespaceCopyOptions;
  readonly #atMs: number;
  readonly #records: Part<Item>;
  readonly #buckets: BucketPart;
  #isResumed = false;
  #total = 0;

  constructor(source: Repository, target: Repository, options: NamespaceCopyOptions) {
    this.#source = source;
    this.#target = target;
    this.#options = options;
    const [from, to] = [source[INTERNALS], target[INTERNALS]];
    this.#atMs = from.clock();
    this.#records = recordPart(from.records, to.records, this.#atMs);
    this.#buckets = bucketPart(from.buckets.transfer, to.buckets.transfer, this.#atMs);
  }

  /** Refuses a source that is not complete itself. */
  static async checkSource(source: Repository): Promise<void> {
    if ((await readMark(source)) === undefined) return;
    const message =
      `The namespace "${source.namespaceName}" of the source is itself a copy that has not come ` +
      "to its end. Finish that first";
    throw new CopyRefusedError("source-unfinished", message);
  }

  /** Refuses a target that must not be copied to, before anything is written. */
  async check(): Promise<void> {
    const { namespaceName: name, namespaceId: fromId } = this.#source;
    const mark = await readMark(this.#target);
    this.#isResumed = mark?.fromId === fromId;
    if (mark === undefined || !this.#isResumed) {
      if (await this.#isEmpty()) return;
      throw new CopyRefusedError(
        "target-has-data",
        `The target has data of the namespace "${name}" already. Delete and purge the namespace ` +
          "there to copy it again",
      );
    }
    if (mark.newestMs === undefined) return;
    const newestMs = await newestBase(this.#target[INTERNALS].buckets.transfer, this.#atMs);
    if (newestMs <= mark.newestMs) return;
    throw new CopyRefusedError(
      "target-in-use",
      `Limiters have used the namespace "${name}" of the target since it was copied: another run ` +
        "would undo what they consumed. Delete and purge the namespace there to copy it again",
    );
  }

  /** Counts what there is to copy, and writes nothing. */
  async count(toId = this.#source.namespaceId): Promise<CopiedNamespace> {
    const counted = await this.#run("survey", survey);
    return { ...this.#reportOf(counted, []), toId };
  }

  /** Copies, compares, and records on the target that it was done. */
  async copy(): Promise<CopiedNamespace> {
    const { live } = this.#options;
    const { namespaceName: name, namespaceId: fromId } = this.#source;
    await this.#countUsage();
    const first = await this.#run("survey", survey);
    this.#total = Object.values(first.counts).reduce((sum, count) => sum + count, 0);
    await writeMark(this.#target, { fromId });
    const passes = [await this.#run("copy", bringUp)];
    if (live) {
      await this.#countUsage();
      passes.push(await this.#run("copy", bringUp));
    } else if (passes[0]?.digest !== first.digest) {
      throw new CopyRefusedError(
        "source-changed",
        `The namespace "${name}" of the source changed while it was copied. Stop its limiters and ` +
          "repeat the command, which goes on where it is; or copy a first time with `live`",
      );
    }
    const compared = await this.#run("compare", compare);
    const copied = this.#reportOf(compared, passes);
    await this.#finish(copied);
    return copied;
  }

  /** Runs a pass over records, then over buckets. */
  async #run(phase: CopyPhase, pass: Pass): Promise<PassResult> {
    const { signal, onProgress } = this.#options;
    const { namespaceName: namespace } = this.#source;
    let done = 0;
    const onRows = (count: number) => {
      done += count;
      onProgress?.({ namespace, phase, done, total: Math.max(done, this.#total) });
    };
    const options = { signal, onRows };
    return both(await pass(this.#records, options), await pass(this.#buckets, options));
  }

  async #countUsage(): Promise<void> {
    await this.#source[INTERNALS].buckets.uncountedUsage?.count({});
  }

  /** Whether the target has nothing but what registering a namespace writes. */
  async #isEmpty(): Promise<boolean> {
    const first = systemConfigKey(this.#target.namespaceId);
    for await (const item of this.#records.target.list()) {
      const isFirst = item.PK === first.PK && item.SK === first.SK;
      if (!isFirst || Object.keys(item).some((name) => !FIRST_CONFIG.has(name))) return false;
    }
    for await (const _ of this.#target[INTERNALS].buckets.transfer.all(this.#atMs)) return false;
    return true;
  }

  /** Records the copy. A live one stays open: a run that nothing has changed meanwhile ends it. */
  async #finish(copied: CopiedNamespace): Promise<void> {
    const { principal, live } = this.#options;
    const { store, namespaceId } = this.#target[INTERNALS].records;
    const { counts, differing, name, fromId } = copied;
    const { put } = this.#target.audit.entryIn(await store.get(systemConfigKey(namespaceId)), {
      action: "store_copied",
      subject: SYSTEM_SUBJECT,
      principal,
      details: {
        from: this.#source[INTERNALS].storeName,
        namespace: name,
        namespace_id: fromId,
        live,
        differing,
        ...counts,
      },
    });
    await store.put(put);
    if (!live && differing === 0) return removeMark(this.#target);
    const newestMs = await newestBase(this.#target[INTERNALS].buckets.transfer, this.#atMs);
    await writeMark(this.#target, { fromId, newestMs });
  }

  #reportOf(compared: PassResult, passes: readonly PassResult[]): CopiedNamespace {
    const { counts, differing, differences } = compared;
    return {
      name: this.#source.namespaceName,
      fromId: this.#source.namespaceId,
      toId: this.#target.namespaceId,
      resumed: this.#isResumed,
      counts,
      written: passes.reduce((sum, pass) => sum + pass.differing, 0),
      leftBehind: this.#buckets.leftBehind(),
      differing,
      differences,
    };
  }
}

/** Adds up the results of two parts. */
function both(one: PassResult, other: PassResult): PassResult {
  const counts = { ...one.counts };
  for (const kind of Object.keys(counts) as RowKind[]) counts[kind] += other.counts[kind];
  return {
    counts: counts satisfies RowCounts,
    digest: one.digest + other.digest,
    differing: one.differing + other.differing,
    differences: [...one.differences, ...other.differences],
  };
}
