/**
 * Builds the site into `.vitepress/dist`, and shows it with `--serve`, or serves it while you write
 * (`--dev`). Nothing is fetched: `npm install` in this folder has everything.
 */
import { existsSync, watch } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build, createServer, serve } from "vitepress";
import { writeApi } from "./api.mjs";
import { content, root, stage, stageOne } from "./pages.mjs";

const site = fileURLToPath(new URL(".", import.meta.url));
const dev = process.argv.includes("--dev");

await stage();
// The reference takes half a minute; while writing, the one of the last build will do.
if (!dev || !existsSync(join(content, "reference/api"))) await writeApi();
if (dev) await write();
else await build(site);
if (!dev && process.argv.includes("--serve")) await serve({ root: site, port: 4173 });

async function write() {
  watch(join(root, "docs"), { recursive: true }, (_, name) => {
    if (name !== null) stageOne(`docs/${name}`.replaceAll("\\", "/")).catch(() => undefined);
  });
  const server = await createServer(site, { port: 5173 });
  await server.listen();
  server.printUrls();
}
