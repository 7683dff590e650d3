/** Switches the hooks of this clone on, or off with `--remove`. npm installs none by itself. */
import { execFileSync } from "node:child_process";

const FOLDER = "scripts/hooks";
const git = (...args) => execFileSync("git", args, { encoding: "utf8" }).trim();

/** Returns the folder of hooks that this clone uses; empty for git's own. */
function current() {
  try {
    return git("config", "--local", "core.hooksPath");
  } catch {
    return "";
  }
}

const isRemoval = process.argv.includes("--remove");
const before = current();
if (before !== "" && before !== FOLDER) {
  console.error(
    `This clone has hooks in ${before} already; git config --unset core.hooksPath first`,
  );
  process.exit(1);
}
if (isRemoval && before !== "") git("config", "--local", "--unset", "core.hooksPath");
if (!isRemoval) git("config", "--local", "core.hooksPath", FOLDER);
console.log(
  isRemoval
    ? "The hooks are off."
    : "Every commit checks its style, every push types and arrows. npm run hooks -- --remove ends it.",
);
