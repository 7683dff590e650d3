/** Notices that a handler is done with a response whose client has gone: no event tells of that. */

/** What a response needs for it. */
interface Endable {
  end(...args: never[]): unknown;
}

/** Calls `done` when the handler calls `end`. */
export function onceEnded(response: Endable, done: () => void): void {
  const { end } = response;
  response.end = (...args) => {
    response.end = end;
    done();
    return end.apply(response, args);
  };
}
