/** The records that Lambda hands over, as changes. */

import { AUDIT_PREFIX, STATE_SK } from "@zae-limiter/limiter/records/keys.ts";
import { decodeItem } from "@zae-limiter/limiter/storage/attribute-value.ts";
import { generationOf, orderOf, type StreamChange } from "./stream-change.ts";

type Attributes = Readonly<Record<string, unknown>>;

/** A record of a DynamoDB stream, as far as it matters here. */
export interface LambdaRecord {
  /** `INSERT`, `MODIFY` or `REMOVE`. */
  readonly eventName?: string;
  /** The stream that the record comes from. */
  readonly eventSourceARN?: string;
  /** The item before and after the change, and its place in the stream. */
  readonly dynamodb?: {
    readonly ApproximateCreationDateTime?: number;
    readonly Keys?: Attributes;
    readonly OldImage?: Attributes;
    readonly NewImage?: Attributes;
    readonly SequenceNumber?: string;
  };
}

/** A batch of stream records, as Lambda passes it to the handler. */
export interface LambdaEvent {
  /** The records, in the order of the stream. */
  readonly Records?: readonly LambdaRecord[];
}

/** Throws when the record is none of DynamoDB's. */
export function changeOfRecord(record: LambdaRecord): StreamChange {
  const { Keys, OldImage, NewImage, SequenceNumber, ApproximateCreationDateTime } =
    record.dynamodb ?? {};
  if (Keys === undefined || !SequenceNumber) {
    throw new Error("expected a record of a DynamoDB stream, with its keys and sequence number");
  }
  const { PK, SK } = decodeItem(Keys);
  // Images of other records are not used, so they are not decoded.
  const matters = SK === STATE_SK || SK.startsWith(AUDIT_PREFIX);
  return {
    id: SequenceNumber,
    order: orderOf(generationOf(record.eventSourceARN ?? ""), SequenceNumber),
    key: { PK, SK },
    before: matters && OldImage !== undefined ? decodeItem(OldImage) : undefined,
    after: matters && NewImage !== undefined ? decodeItem(NewImage) : undefined,
    atMs: Math.round((ApproximateCreationDateTime ?? 0) * 1000),
  };
}
