/** Reads one shard of a stream, batch by batch. */

import type { _Record, ShardIteratorType } from "@aws-sdk/client-dynamodb-streams";
import { InfrastructureNotFoundError, ValidationError } from "../../domain/errors/errors.ts";
import type { Mark } from "./position.ts";
import type { Calls } from "./transport/calls.ts";

export interface ShardBatch {
  readonly records: readonly _Record[];
  /** The shard is closed and read to its end; its children may be read now. */
  readonly ended: boolean;
}

const NOTHING: ShardBatch = { records: [], ended: false };
const ENDED: ShardBatch = { records: [], ended: true };
const MINUTE_MS = 60_000;

export class ShardReader {
  readonly id: string;
  readonly #calls: Calls;
  readonly #stream: string;
  #mark: Mark;
  #iterator: string | undefined;

  constructor(calls: Calls, stream: string, id: string, mark: Mark) {
    this.#calls = calls;
    this.#stream = stream;
    this.id = id;
    this.#mark = mark;
  }

  get mark(): Mark {
    return this.#mark;
  }

  /** Skips the records that are there already. */
  async skipToNow(): Promise<void> {
    this.#iterator = await this.#openIterator("LATEST");
    // The server's own time of this answer, since it also stamps the records.
    this.#mark = { from: "time", sinceMs: this.#calls.serverDateMs ?? Date.now() };
  }

  /** Returns the next records; none when there are none yet. */
  async next(): Promise<ShardBatch> {
    try {
      this.#iterator ??= await this.#openIterator(iteratorType(this.#mark));
      const input = { ShardIterator: this.#iterator };
      const { Records = [], NextShardIterator } = await this.#calls.read("GetRecords", input);
      this.#iterator = NextShardIterator;
      return {
        records: Records.filter((record) => this.#isWanted(record)),
        ended: NextShardIterator === undefined,
      };
    } catch (error) {
      return this.#recover(error);
    }
  }

  /** Notes that a record was handed out. */
  advance(sequence: string): void {
    this.#mark = { from: "sequence", after: sequence };
  }

  async #openIterator(type: ShardIteratorType): Promise<string | undefined> {
    const { ShardIterator } = await this.#calls.read("GetShardIterator", {
      StreamArn: this.#stream,
      ShardId: this.id,
      ShardIteratorType: type,
      ...(this.#mark.from === "sequence" && { SequenceNumber: this.#mark.after }),
    });
    return ShardIterator;
  }

  #recover(error: unknown): ShardBatch {
    const name = ((error as Error).cause as Error | undefined)?.name;
    // The whole shard is older than the stream keeps.
    if (error instanceof InfrastructureNotFoundError) return ENDED;
    if (name !== "ExpiredIteratorException" && name !== "TrimmedDataAccessException") throw error;
    // Continuing with the oldest record would skip changes silently.
    if (name === "TrimmedDataAccessException" && this.#mark.from === "sequence") {
      throw new ValidationError(
        "position",
        this.#mark.after,
        "these changes are not kept any more",
        { cause: error },
      );
    }
    this.#iterator = undefined;
    return NOTHING;
  }

  /** Records may be stamped with whole minutes, and one too many is better than one too few. */
  #isWanted(record: _Record): boolean {
    if (this.#mark.from !== "time") return true;
    const atMs = record.dynamodb?.ApproximateCreationDateTime?.getTime() ?? 0;
    return atMs >= Math.floor(this.#mark.sinceMs / MINUTE_MS) * MINUTE_MS;
  }
}

function iteratorType(mark: Mark): ShardIteratorType {
  return mark.from === "sequence" ? "AFTER_SEQUENCE_NUMBER" : "TRIM_HORIZON";
}
