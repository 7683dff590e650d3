/**
 * Runs after every `npm install` in this repository, never at users.
 *
 * The tests bring a newer Node along as a package, for what only a newer Node can do. npm links its
 * binary as `node_modules/.bin/node`, and that folder comes first in the path of every script: all
 * tests would silently run on the wrong Node. Whoever needs the newer one asks the package for it.
 */
import { rmSync } from "node:fs";

for (const name of ["node", "node.cmd", "node.ps1"]) {
  rmSync(new URL(`../node_modules/.bin/${name}`, import.meta.url), { force: true });
}
