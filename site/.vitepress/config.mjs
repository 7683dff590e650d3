import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { defineConfig } from "vitepress";
import { content, repository, sourceOf } from "../pages.mjs";
import { mermaid } from "./mermaid-fence.mjs";
import { weightOf } from "./search-weight.mjs";
import { nav, sidebars } from "./sidebar.mjs";

const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">' +
  '<path d="M4 4v22a3 3 0 0 0 3 3h18a3 3 0 0 0 3-3V4" fill="none" stroke="#475569" stroke-width="3"/>' +
  '<path d="M6 15h20v10a2 2 0 0 1-2 2H8a2 2 0 0 1-2-2z" fill="#0891b2"/></svg>';
const api = join(content, "reference/api/typedoc-sidebar.json");

export default defineConfig({
  title: "zae-limiter",
  description: "Rate limiting for LLM gateways, APIs and multi-tenant platforms on Node.js",
  base: process.env.DOCS_BASE ?? "/",
  head: [["link", { rel: "icon", href: `data:image/svg+xml,${encodeURIComponent(ICON)}` }]],
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
    search: {
      provider: "local",
      options: { miniSearch: { searchOptions: { boostDocument: weightOf } } },
    },
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
