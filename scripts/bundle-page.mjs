/**
 * The pages of the dashboard and of load tests: `dist/dashboard/page.html.gz` and
 * `dist/loadtest/page.html.gz`, each one file that loads nothing else, compressed so that it adds as
 * little as possible to an installation.
 */
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { root } from "./entry-points.mjs";
import { noticesOf } from "./notices.mjs";

/** The frame of both pages. */
const template = await readFile(join(root, "packages/dashboard/page/page.html"), "utf8");

async function bundlePage(name) {
  const out = join(root, `dist/${name}/page.html.gz`);
  const { metafile, outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: {
      script: `packages/${name}/page/main.tsx`,
      style: `packages/${name}/page/all.css`,
    },
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
  const html = template.replace("/*STYLE*/", () => style).replace("/*SCRIPT*/", () => script);
  await mkdir(dirname(out), { recursive: true });
  await writeFile(join(dirname(out), "notices.txt"), await noticesOf(root, metafile));
  // Tests may build the page while others read it.
  await writeFile(`${out}.${process.pid}`, gzipSync(html, { level: 9 }));
  await rename(`${out}.${process.pid}`, out);
}

await Promise.all(["dashboard", "loadtest"].map(bundlePage));
