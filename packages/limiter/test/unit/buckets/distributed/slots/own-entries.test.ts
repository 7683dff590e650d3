import {
  type EntryWrite,
  entryWrite,
  fenceOf,
  fenceRequest,
  marksAfter,
  NO_OWN,
  type OwnMarks,
  outcomeOf,
  slotsIn,
  withEntry,
} from "@zae-limiter/limiter/buckets/distributed/slots/own-entries.ts";
import { encodeMark } from "@zae-limiter/limiter/records/slot-attributes.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { expect, test } from "vitest";

const ENTRY = "p7x2k9.4";
const NAME = `s_parallel_h_${ENTRY}`;
const BUCKET: Item = { PK: "ns/BUCKET#e#r#0", SK: "#STATE", rf: 1, s_parallel_fr: 5 };

function moved(marks: OwnMarks, count: number): EntryWrite {
  const write = entryWrite(ENTRY, marks, new Map([["parallel", count]]));
  if (write === undefined) throw new Error("it has less");
  return write;
}

function after(marks: OwnMarks, write: EntryWrite): OwnMarks {
  return marksAfter(marks, write) ?? NO_OWN;
}

function stored(sequence: number, count: number): Item {
  return { ...BUCKET, [NAME]: encodeMark({ sequence, count }) };
}

test("the first take begins an entry, and the last release removes it", () => {
  const take = moved(NO_OWN, 2);
  const request = withEntry({ change: { add: { s_parallel_fr: -2 } }, condition: [] }, take);
  expect(request.condition).toEqual([{ is: "absent", name: NAME }]);
  expect(request.change.set).toEqual({ [NAME]: 65_536 + 2 });
  const marks = after(NO_OWN, take);
  expect(slotsIn(marks)).toBe(2);
  const one = moved(marks, -1);
  expect(withEntry({ change: {}, condition: [] }, one).change.set).toEqual({
    [NAME]: 2 * 65_536 + 1,
  });
  const last = moved(after(marks, one), -1);
  const removal = withEntry({ change: {}, condition: [] }, last);
  expect(removal.condition).toEqual([{ is: "=", name: NAME, value: 2 * 65_536 + 1 }]);
  expect(removal.change).toMatchObject({ set: {}, remove: [NAME] });
  expect(marksAfter(after(marks, one), last)).toBeUndefined();
});

test("an entry gives back what it has, and no more", () => {
  expect(entryWrite(ENTRY, NO_OWN, new Map([["parallel", -1]]))).toBeUndefined();
  const marks = after(NO_OWN, moved(NO_OWN, 2));
  expect(entryWrite(ENTRY, marks, new Map([["parallel", -3]]))).toBeUndefined();
  expect(entryWrite(ENTRY, marks, new Map([["others", -1]]))).toBeUndefined();
});

test("an item says what has become of a write", () => {
  const marks = after(NO_OWN, moved(NO_OWN, 2));
  const release = moved(marks, -1);
  expect(outcomeOf(stored(1, 2), release)).toBe("open");
  expect(outcomeOf(stored(2, 1), release)).toBe("landed");
  expect(outcomeOf(stored(2, 2), release)).toBe("fenced");
  expect(outcomeOf(BUCKET, release)).toBe("gone");
  expect(outcomeOf(undefined, release)).toBe("gone");
  // The count is the same again, and the sequence is not: it is not as it was before.
  expect(outcomeOf(stored(3, 2), release)).toBe("gone");
  expect(outcomeOf(BUCKET, moved(marks, -2))).toBe("landed");
  expect(outcomeOf(BUCKET, moved(NO_OWN, 1))).toBe("open");
});

test("a fence raises nothing but the sequence, and keeps an entry that it began", () => {
  const take = moved(NO_OWN, 2);
  const request = fenceRequest(take);
  expect(request.condition).toEqual([
    { is: "exists", name: "rf" },
    { is: "absent", name: NAME },
  ]);
  expect(request.change.set).toEqual({ [NAME]: 65_536 });
  const marks = after(NO_OWN, fenceOf(take));
  expect(slotsIn(marks)).toBe(0);
  // The late take tests that there is no entry: so there has to be one.
  const again = moved(marks, 1);
  const back = moved(after(marks, again), -1);
  expect(withEntry({ change: {}, condition: [] }, back).change).toMatchObject({
    set: { [NAME]: 3 * 65_536 },
    remove: [],
  });
  expect(marksAfter(after(marks, again), back)).toBeDefined();
});

test("the sequence of a name goes on, although one of its limits was given back", () => {
  const both = entryWrite(
    ENTRY,
    NO_OWN,
    new Map([
      ["parallel", 1],
      ["heavy", 1],
    ]),
  ) as EntryWrite;
  const marks = after(NO_OWN, both);
  const without = after(marks, moved(marks, -1));
  const again = withEntry({ change: {}, condition: [] }, moved(without, 1));
  expect(again.condition).toEqual([{ is: "absent", name: NAME }]);
  expect(again.change.set).toEqual({ [NAME]: 3 * 65_536 + 1 });
});
