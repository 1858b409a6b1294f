import { join } from "node:path";
import { defineConfig } from "vitepress";
import { repositoryRoot } from "../scripts/run-command.ts";
import { headingAnchor, pageAddress } from "./addresses.ts";
import { basePath } from "./base-path.ts";
import { baseForHtml, linkPages, linkReference, linkSignatures } from "./markdown.ts";
import { sidebar } from "./sidebar.ts";

const base = basePath();

/** Of a Markdown renderer, what the search index needs. */
interface TextRenderer {
  set(options: { highlight: null }): unknown;
  render(text: string, env: object): string;
}

/** The index takes texts only: without colours, code costs nothing. */
function renderForSearch(text: string, env: object, markdown: TextRenderer): string {
  markdown.set({ highlight: null });
  return markdown.render(text, env);
}

/** Every word must be on a page; what explains a thing comes before its declaration. The browser gets these functions as text. */
const searchOptions = {
  combineWith: "AND",
  fuzzy: 0.2,
  prefix: true,
  boost: { title: 4, text: 2, titles: 1 },
  boostDocument: (id: string): number => (/\/(?:api|examples|decisions)\//.test(id) ? 0.5 : 1),
} as const;

export const config = defineConfig({
  // Documents lie in several folders, so the root of the pages is that of the repository; all but the documents is left out.
  srcDir: repositoryRoot,
  srcExclude: [
    "AGENTS.md",
    "{api,chaos,coverage,dist,examples,scripts,skills,src,test}/**",
    "bench/*/**",
    "site/!(pages)/**",
  ],
  rewrites: (path) => {
    const address = pageAddress(path);
    return address === undefined ? path : `${address}.md`;
  },
  outDir: process.env["TROUPE_SITE_FOLDER"] ?? join(repositoryRoot, ".troupe", "site"),
  cacheDir: join(repositoryRoot, ".troupe", "site-cache"),
  base,
  lang: "en",
  title: "troupe",
  description: "An actor runtime for teams of LLM agents, in TypeScript.",
  cleanUrls: false,
  metaChunk: true,
  markdown: {
    linkify: false,
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
    anchor: { slugify: headingAnchor },
    codeTransformers: [linkSignatures(base)],
    config: (markdown) => {
      // A line that starts with a word in angle brackets is text, as in code that goes over two lines.
      markdown.block.ruler.disable("html_block");
      linkPages(markdown);
      linkReference(markdown);
      baseForHtml(markdown, base);
    },
  },
  themeConfig: {
    nav: [
      { text: "First steps", link: "/first-steps" },
      { text: "Examples", link: "/examples/" },
      { text: "Reference", link: "/reference" },
      { text: "API", link: "/api/" },
    ],
    sidebar: sidebar(),
    outline: { level: [2, 3], label: "On this page" },
    search: { provider: "local", options: { _render: renderForSearch, miniSearch: { searchOptions } } },
    externalLinkIcon: true,
  },
  vite: {
    // The project's own settings are for another compiler.
    esbuild: { tsconfigRaw: { compilerOptions: { target: "es2022" } } },
    publicDir: false,
    server: {
      host: "127.0.0.1",
      watch: {
        ignored: ["bench", "chaos", "dist", "src", "test", ".troupe"].map((name) => `${repositoryRoot}/${name}/**`),
      },
    },
    build: { chunkSizeWarningLimit: 8_000 },
  },
});
