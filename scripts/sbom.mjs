/**
 * Writes `dist/sbom.json`: the packages whose code is in this one, as CycloneDX, from the notices of
 * the builds. With `--advisories` it asks the registry for known defects of them instead, and fails
 * when there are any; a registry that does not answer is no failure.
 */
import { execFileSync } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { manifest, root } from "./entry-points.mjs";

const NOTICES = ["notices.txt", "dashboard/notices.txt", "loadtest/notices.txt"];
/** `yaml 2.8.1, ISC`, below a line. */
const PACKAGE = /^-{80}\n(\S+) (\S+), (.+)$/gm;
const TIMEOUT_MS = 10_000;

/** Returns each package of the notices once, by its name. */
async function bundledPackages() {
  const texts = await Promise.all(
    NOTICES.map((path) => readFile(join(root, "dist", path), "utf8")),
  );
  const found = texts.flatMap((text) => [...text.matchAll(PACKAGE)]);
  const packages = found.map(([, name, version, license]) => ({ name, version, license }));
  const distinct = new Map(packages.map((each) => [`${each.name}@${each.version}`, each]));
  return [...distinct.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

function component({ name, version, license }) {
  const purl = `pkg:npm/${name.replace("@", "%40")}@${version}`;
  const licenses = [{ license: { name: license } }];
  return { type: "library", "bom-ref": purl, name, version, licenses, purl };
}

function sbom(packages) {
  const { name, version } = manifest;
  return {
    bomFormat: "CycloneDX",
    specVersion: "1.5",
    version: 1,
    metadata: { component: { type: "library", name, version, purl: `pkg:npm/${name}@${version}` } },
    components: packages.map(component),
  };
}

/** Returns the known defects of some packages; `undefined` when the registry does not answer. */
async function advisoriesFor(packages) {
  const registry = execFileSync("npm", ["config", "get", "registry"], { encoding: "utf8" }).trim();
  const body = Object.fromEntries(packages.map(({ name, version }) => [name, [version]]));
  try {
    const answer = await fetch(new URL("-/npm/v1/security/advisories/bulk", registry), {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    return answer.ok ? Object.entries(await answer.json()) : undefined;
  } catch {
    return undefined;
  }
}

const packages = await bundledPackages();
if (process.argv.includes("--advisories")) {
  const found = await advisoriesFor(packages);
  const lines = (found ?? []).flatMap(([name, list]) =>
    list.map(({ title, url }) => `${name}: ${title} (${url})`),
  );
  const none = `No known defects in ${packages.length} packages`;
  if (found === undefined) console.log("The registry does not answer about defects: not checked");
  else console.log(lines.length === 0 ? none : lines.join("\n"));
  process.exitCode = lines.length === 0 ? 0 : 1;
} else {
  await writeFile(join(root, "dist", "sbom.json"), `${JSON.stringify(sbom(packages), null, 1)}\n`);
}
