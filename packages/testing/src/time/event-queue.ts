/** Future events in the order of time; events of one moment in the order of planning. */

interface PlannedEvent {
  readonly atMs: number;
  readonly order: number;
  /** `undefined` once it was cancelled. */
  run: (() => void) | undefined;
}

/** A binary heap: a simulation plans and takes millions of events. */
export class EventQueue {
  readonly #heap: PlannedEvent[] = [];
  #planned = 0;

  get size(): number {
    return this.#heap.length;
  }

  /** The time of the next event. Cancelled events are dropped on the way. */
  get nextMs(): number | undefined {
    for (;;) {
      const first = this.#heap[0];
      if (first === undefined || first.run !== undefined) return first?.atMs;
      this.#take();
    }
  }

  plan(atMs: number, run: () => void): PlannedEvent {
    const event: PlannedEvent = { atMs, order: this.#planned, run };
    this.#planned += 1;
    this.#heap.push(event);
    this.#rise(this.#heap.length - 1);
    return event;
  }

  /** Takes the next event; call it only after `nextMs` has shown that there is one. */
  take(): PlannedEvent {
    return this.#take();
  }

  #take(): PlannedEvent {
    const heap = this.#heap;
    const first = heap[0] as PlannedEvent;
    const last = heap.pop() as PlannedEvent;
    if (heap.length > 0) {
      heap[0] = last;
      this.#sink();
    }
    return first;
  }

  #rise(from: number): void {
    const heap = this.#heap;
    const event = heap[from] as PlannedEvent;
    let at = from;
    while (at > 0) {
      const above = (at - 1) >> 1;
      const parent = heap[above] as PlannedEvent;
      if (isBefore(parent, event)) break;
      heap[at] = parent;
      at = above;
    }
    heap[at] = event;
  }

  #sink(): void {
    const heap = this.#heap;
    const event = heap[0] as PlannedEvent;
    let at = 0;
    for (;;) {
      const left = 2 * at + 1;
      if (left >= heap.length) break;
      const right = left + 1;
      const child =
        right < heap.length && isBefore(heap[right] as PlannedEvent, heap[left] as PlannedEvent)
          ? right
          : left;
      const next = heap[child] as PlannedEvent;
      if (isBefore(event, next)) break;
      heap[at] = next;
      at = child;
    }
    heap[at] = event;
  }
}

function isBefore(left: PlannedEvent, right: PlannedEvent): boolean {
  return left.atMs < right.atMs || (left.atMs === right.atMs && left.order < right.order);
}
