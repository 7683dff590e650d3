import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { defineConfig } from "vitepress";
import { content, repository, sourceOf } from "../pages.mjs";
import { mermaid } from "./mermaid-fence.mjs";
import { nav, sidebars } from "./sidebar.mjs";

const api = join(content, "reference/api/typedoc-sidebar.json");

export default defineConfig({
  title: "zae-limiter",
  description: "Rate limiting for LLM gateways, APIs and multi-tenant platforms on Node.js",
  base: process.env.DOCS_BASE ?? "/",
  srcDir: "content",
  cleanUrls: true,
  lastUpdated: false,
  markdown: {
    config: mermaid,
    // The anchors that GitHub gives, so that a link works in both places.
    anchor: { slugify: slugOf },
  },
  themeConfig: {
    nav,
    sidebar: sidebars(existsSync(api) ? JSON.parse(readFileSync(api, "utf8")) : []),
    outline: [2, 3],
    search: { provider: "local" },
    socialLinks: [{ icon: "github", link: repository }],
    editLink: {
      text: "Edit this page",
      // This function runs in the browser, where it cannot use what is imported here.
      pattern: ({ frontmatter }) => frontmatter.editUrl,
    },
    footer: { message: "MIT License" },
  },
  transformPageData(page) {
    page.frontmatter.editUrl = `${repository}/edit/main/${sourceOf(page.filePath)}`;
    if (page.filePath.startsWith("reference/api/")) page.frontmatter.editLink = false;
  },
});

function slugOf(heading) {
  const text = heading.trim().toLowerCase();
  return text.replace(/[^\p{L}\p{N}\s_-]/gu, "").replace(/\s/g, "-");
}
