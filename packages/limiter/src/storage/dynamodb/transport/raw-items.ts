/**
 * A repair of the SDK: it loses the value of an attribute named `__proto__`. Where an answer has
 * that name, the items are taken from the text of the answer. They need no conversion, since the
 * SDK hands out attributes in the very form in which they are sent.
 */

const NAME = Buffer.from('"__proto__"');
/** The fields of answers and errors that hold items. */
const FIELDS = ["Item", "Items", "Attributes", "Responses", "CancellationReasons"] as const;
const IMAGES = ["OldImage", "NewImage"] as const;

type Fields = Record<string, unknown>;

/** Whether an answer contains that name. */
export function needsRepair(body: Buffer): boolean {
  return body.includes(NAME);
}

/** Puts the items of `text` into an answer, or into an error that carries items. */
export function repairItems(answer: unknown, text: string): void {
  const raw = JSON.parse(text) as Fields;
  const repaired = answer as Fields;
  for (const field of FIELDS) {
    if (field in repaired && field in raw) repaired[field] = raw[field];
  }
  const records = (repaired.Records ?? []) as { dynamodb?: Fields }[];
  const rawRecords = (raw.Records ?? []) as { dynamodb?: Fields }[];
  for (const [index, { dynamodb = {} }] of records.entries()) {
    for (const image of IMAGES) {
      if (image in dynamodb) dynamodb[image] = rawRecords[index]?.dynamodb?.[image];
    }
  }
}
