/**
 * The dashboard's page: `dist/dashboard/page.html.gz`, one file that loads nothing else, compressed
 * so that it adds as little as possible to an installation.
 */
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { root } from "./entry-points.mjs";
import { noticesOf } from "./notices.mjs";

const out = join(root, "dist/dashboard/page.html.gz");
const folder = join(root, "web/dashboard");

const { metafile, outputFiles } = await build({
  absWorkingDir: root,
  entryPoints: { script: "web/dashboard/main.tsx", style: "web/dashboard/all.css" },
  outdir: "unused",
  bundle: true,
  minify: true,
  format: "esm",
  platform: "browser",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  logLevel: "warning",
  metafile: true,
  write: false,
});
const textOf = (ending) => outputFiles.find(({ path }) => path.endsWith(ending)).text;
// A closing tag within a text of the script would end the script.
const script = textOf(".js").replaceAll("</script", "<\\/script").trim();
const style = textOf(".css").trim();
const template = await readFile(join(folder, "page.html"), "utf8");
const html = template.replace("/*STYLE*/", () => style).replace("/*SCRIPT*/", () => script);
await mkdir(dirname(out), { recursive: true });
await writeFile(join(dirname(out), "notices.txt"), await noticesOf(root, metafile));
// Tests may build the page while others read it.
await writeFile(`${out}.${process.pid}`, gzipSync(html, { level: 9 }));
await rename(`${out}.${process.pid}`, out);
