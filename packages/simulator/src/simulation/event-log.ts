/** Log of the events of a run, line by line, and a hash of it. */

/** Maximum number of lines kept: enough to read the end of a run; the rest is only counted. */
const KEPT = 200_000;

export class EventLog {
  readonly #startMs: number;
  readonly #now: () => number;
  #lines: string[] = [];
  #low = 0xdeadbeef;
  #high = 0x41c6ce57;
  #count = 0;
  #keeps: boolean;

  constructor(now: () => number, keeps: boolean) {
    this.#now = now;
    this.#startMs = now();
    this.#keeps = keeps;
  }

  get count(): number {
    return this.#count;
  }

  get lines(): readonly string[] {
    return this.#lines;
  }

  /** Hash of 53 bits, equal for equal events in equal order. */
  get hash(): string {
    const mixed = (left: number, right: number) =>
      Math.imul(left ^ (left >>> 16), 2_246_822_507) ^
      Math.imul(right ^ (right >>> 13), 3_266_489_909);
    const [low, high] = [mixed(this.#low, this.#high), mixed(this.#high, this.#low)];
    return (4_294_967_296 * (2_097_151 & high) + (low >>> 0)).toString(16).padStart(14, "0");
  }

  add(text: string): void {
    const line = `${((this.#now() - this.#startMs) / 1000).toFixed(6)} ${text}`;
    this.#count += 1;
    for (let at = 0; at < line.length; at += 1) {
      const code = line.charCodeAt(at);
      this.#low = Math.imul(this.#low ^ code, 2_654_435_761);
      this.#high = Math.imul(this.#high ^ code, 1_597_334_677);
    }
    if (!this.#keeps) return;
    this.#lines.push(line);
    if (this.#lines.length > 2 * KEPT) this.#lines = this.#lines.slice(-KEPT);
  }
}
