/** The cells of one attempt of a step, and what its work lacks. */

import { isDeepStrictEqual } from "node:util";
import { type Item, type Key, keyOf } from "./item.ts";
import type { Cell, CellWrite, PageRange } from "./item-table.ts";
import type { ListedRows } from "./step-table.ts";

/** Stops work that asks for cells which were not read yet. */
export class MissingKeys extends Error {
  readonly keys: readonly Key[];

  constructor(keys: readonly Key[]) {
    super("cells were not read yet");
    this.keys = keys;
  }
}

/** Stops work that asks for a page which was not read yet. */
export class MissingPage extends Error {
  readonly id: string;
  readonly range: PageRange;
  readonly alongOf: ((item: Item) => readonly Key[]) | undefined;

  constructor(id: string, range: PageRange, alongOf: MissingPage["alongOf"]) {
    super("a page was not read yet");
    this.id = id;
    this.range = range;
    this.alongOf = alongOf;
  }
}

/** The cells that one attempt of a step has read, and what its last run has used and written. */
export class StepCells implements ListedRows {
  readonly #cells = new Map<string, Cell>();
  readonly #pages = new Map<string, readonly Item[]>();
  readonly #used = new Set<Cell>();
  readonly #writes = new Map<string, CellWrite>();

  begin(): void {
    this.#used.clear();
    this.#writes.clear();
  }

  get(key: Key, along: readonly Key[] = []): Item | undefined {
    const id = idOf(key);
    const cell = this.#cells.get(id);
    if (cell === undefined) throw new MissingKeys(this.unread([key, ...along]));
    this.#used.add(cell);
    const write = this.#writes.get(id);
    return write === undefined ? cell.item : write.after;
  }

  set(key: Key, after: Item | undefined): void {
    this.#write(key, after, { isLogged: true });
  }

  setUnlogged(key: Key, after: Item | undefined, mustLast = false): void {
    this.#write(key, after, { isLogged: false, mustLast });
  }

  #write(key: Key, after: Item | undefined, kept: Pick<CellWrite, "isLogged" | "mustLast">): void {
    this.get(key);
    const id = idOf(key);
    const before = this.#cells.get(id)?.item;
    this.#writes.set(id, { key: keyOf(key), before, after, ...kept });
  }

  keys(range: PageRange): readonly Item[] {
    const id = JSON.stringify(range);
    const found = this.#pages.get(id);
    if (found === undefined) throw new MissingPage(id, range, undefined);
    return found;
  }

  page(range: PageRange, alongOf: (item: Item) => readonly Key[] = () => []): readonly Item[] {
    const id = JSON.stringify(range);
    const found = this.#pages.get(id);
    if (found === undefined) throw new MissingPage(id, range, alongOf);
    return found.flatMap((item) => this.get(item) ?? []);
  }

  keep(cell: Cell): void {
    this.#cells.set(idOf(cell.key), cell);
  }

  keepPage(id: string, items: readonly Item[]): void {
    this.#pages.set(id, items);
  }

  /** Returns an item that was read, without making the step depend on it. */
  known(key: Key): Item | undefined {
    return this.#cells.get(idOf(key))?.item;
  }

  /** Returns the keys that were not read, each once. */
  unread(keys: readonly Key[]): readonly Key[] {
    const lacking = new Map(keys.map((key) => [idOf(key), key]));
    for (const id of lacking.keys()) if (this.#cells.has(id)) lacking.delete(id);
    return [...lacking.values()];
  }

  /** Leaves out writes that change nothing, unless they carry a token; none of them is logged. */
  outcome(hasToken: boolean) {
    const writes: CellWrite[] = [];
    for (const write of this.#writes.values()) {
      const isChange = !isDeepStrictEqual(write.before, write.after);
      if (isChange) writes.push(write);
      else if (hasToken) writes.push({ ...write, isLogged: false });
    }
    return { reads: [...this.#used], writes };
  }
}

/** Keys have no NUL, so two keys cannot be mistaken for each other. */
export function idOf({ PK, SK }: Key): string {
  return `${PK}\u0000${SK}`;
}
