/**
 * Finds the number of users per worker with the best throughput within a latency bound.
 *
 * Throughput rises with the number of users until the store or the worker is busy, and falls when
 * they get in each other's way; latency rises all the time. So there is one best number: doubling
 * finds a range with it, and a search by thirds narrows the range down.
 */

/** The measurement of one number of users. */
export interface TuneStep {
  readonly users: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly errors: number;
}

interface TuneOptions {
  readonly usersMax: number;
  /** The p99 that must not be exceeded. */
  readonly p99MsMax: number;
  /** Runs this many users for a while, and measures. */
  readonly measure: (users: number) => Promise<TuneStep>;
  /** Ends the search early, with what was measured. */
  readonly signal?: AbortSignal;
}

export interface Tuned {
  /** `undefined` when not even one user keeps within the bound. */
  readonly best: TuneStep | undefined;
  /** In the order of users. */
  readonly curve: readonly TuneStep[];
}

/** A range this narrow, compared with its end, is not searched further. */
const NARROW = 0.05;

/** Searches; no number of users is measured twice. */
export async function tune(options: TuneOptions): Promise<Tuned> {
  const search = new Search(options);
  let [low, high] = await search.range();
  while (high - low > Math.max(2, NARROW * high) && !search.isEnded) {
    const third = Math.max(1, Math.floor((high - low) / 3));
    const [left, right] = [low + third, high - third];
    if (await search.isBetter(left, right)) high = right;
    else low = left;
  }
  for (let users = low; high - low <= 2 && users <= high && !search.isEnded; users += 1) {
    await search.measured(users);
  }
  return search.tuned();
}

class Search {
  readonly #options: TuneOptions;
  readonly #steps = new Map<number, TuneStep>();

  constructor(options: TuneOptions) {
    this.#options = options;
  }

  get isEnded(): boolean {
    return this.#options.signal?.aborted === true;
  }

  async measured(users: number): Promise<TuneStep> {
    const known = this.#steps.get(users);
    if (known !== undefined) return known;
    const step = await this.#options.measure(users);
    this.#steps.set(users, step);
    return step;
  }

  /** Doubles until it gets worse; the best is between the neighbours of the best seen. */
  async range(): Promise<[low: number, high: number]> {
    const { usersMax } = this.#options;
    let [low, middle] = [1, 1];
    while (middle < usersMax && !this.isEnded) {
      const high = Math.min(usersMax, 2 * middle);
      if (!(await this.isBetter(high, middle))) return [low, high];
      [low, middle] = [middle, high];
    }
    return [low, middle];
  }

  /** Returns whether a number of users is better; above the bound, fewer always are. */
  async isBetter(users: number, than: number): Promise<boolean> {
    const [one, other] = [await this.measured(users), await this.measured(than)];
    const [fits, otherFits] = [this.#fits(one), this.#fits(other)];
    if (fits && otherFits) return one.perSecond > other.perSecond;
    return fits === otherFits ? one.users < other.users : fits;
  }

  tuned(): Tuned {
    const curve = [...this.#steps.values()].sort((a, b) => a.users - b.users);
    const fitting = curve.filter((step) => this.#fits(step));
    const best = fitting.reduce<TuneStep | undefined>(
      (top, step) => (top === undefined || step.perSecond > top.perSecond ? step : top),
      undefined,
    );
    return { best, curve };
  }

  #fits({ p99Ms }: TuneStep): boolean {
    return p99Ms <= this.#options.p99MsMax;
  }
}
