/** Writes the API reference into `content/reference/api`, from the types of the sources. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { Application, Converter, ReflectionKind } from "typedoc";
import { manifest, sourcePath } from "../scripts/entry-points.mjs";
import { content, repository, root } from "./pages.mjs";

/** `zae-limiter`, `zae-limiter/express`, … and the source file behind each of them. */
const entries = new Map(
  Object.entries(manifest.exports)
    .map(([name, path]) => [name, path.default ?? path])
    .map(([name, path]) => [name, /^\.\/dist\/(.+)\.js$/.exec(path)?.[1]])
    .filter(([, path]) => path !== undefined)
    .map(([name, path]) => [sourcePath(path), join(manifest.name, name)]),
);

/** Writes the pages. Throws when the sources do not compile. */
export async function writeApi() {
  const out = join(content, "reference/api");
  await rm(out, { recursive: true, force: true });
  const app = await Application.bootstrapWithPlugins({
    out,
    plugin: ["typedoc-plugin-markdown", "typedoc-vitepress-theme"],
    entryPoints: [...entries.keys()].map((path) => join(root, `${path}.ts`)),
    tsconfig: join(root, "tsconfig.build.json"),
    basePath: root,
    readme: "none",
    name: "API",
    disableSources: false,
    sourceLinkTemplate: `${repository}/blob/main/{path}#L{line}`,
    gitRevision: "main",
    disableGit: true,
    excludePrivate: true,
    excludeInternal: true,
    logLevel: "Error",
    // Options of the Markdown plugin and of its theme for VitePress.
    docsRoot: content,
    hidePageHeader: true,
    hideBreadcrumbs: true,
    useCodeBlocks: true,
    expandObjects: true,
    parametersFormat: "table",
    interfacePropertiesFormat: "table",
    typeDeclarationFormat: "table",
    entryFileName: "index",
  });
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => nameModules(project));
  const project = await app.convert();
  if (project === undefined || app.logger.hasErrors()) throw new Error("typedoc failed");
  await app.generateOutputs(project);
  if (app.logger.hasErrors()) throw new Error("typedoc failed");
}

/** Names each module as users import it. */
function nameModules(project) {
  for (const child of project.children ?? []) {
    if (!child.kindOf(ReflectionKind.Module)) continue;
    child.name = entries.get(child.name) ?? entries.get(`${child.name}/index`) ?? child.name;
  }
}
