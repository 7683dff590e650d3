/** A place on a server that all tests of a suite share. */

import { afterAll, beforeAll } from "vitest";

/** Opens a place before the tests of a suite, drops it after them, and returns how to get it. */
export function forSuite<Place extends { drop(): Promise<void> }>(
  open: () => Promise<Place>,
): () => Place {
  let place: Place | undefined;
  beforeAll(async () => {
    place = await open();
  });
  afterAll(() => place?.drop());
  return () => place as Place;
}
