/** Says that the child is ready, and waits until the parent lets it go on. */

import { once } from "node:events";

export async function startingShot() {
  console.log('"ready"');
  await once(process.stdin, "data");
  process.stdin.pause();
}
