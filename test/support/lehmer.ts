/** Returns numbers from 0 to 1 that are the same in every run, from a state of 1 or more. */
export function lehmer(state: number): () => number {
  let drawn = state;
  return () => {
    drawn = (drawn * 48_271) % 2_147_483_647;
    return drawn / 2_147_483_647;
  };
}
