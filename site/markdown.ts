/** What the site does with Markdown beside VitePress: links between files become links between pages, and names lead to the API pages. */
import { existsSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import type { MarkdownOptions, MarkdownRenderer } from "vitepress";
import { repositoryRoot } from "../scripts/run-command.ts";
import { pageAddress } from "./addresses.ts";
import { type ApiAddresses, apiAddressesFile } from "./api-entries.ts";

type ShikiTransformer = NonNullable<MarkdownOptions["codeTransformers"]>[number];
type Token = ReturnType<MarkdownRenderer["parse"]>[number];

/** Links of a document are paths from its file. A link to a file without a page fails the build. */
export function linkPages(markdown: MarkdownRenderer): void {
  markdown.core.ruler.push("link_pages", ({ tokens, env }) => {
    const { path, realPath = path } = env as { path: string; realPath?: string };
    const document = posix.relative(slashed(repositoryRoot), slashed(realPath));
    for (const { children } of tokens) {
      for (const token of children ?? []) {
        const href = token.type === "link_open" ? token.attrGet("href") : null;
        if (href !== null) token.attrSet("href", pageLink(document, href));
      }
    }
  });
}

function pageLink(document: string, href: string): string {
  if (/^(?:[a-z]+:|#|\/)/.test(href)) return href;
  const [path = "", anchor] = href.split("#");
  const target = posix.join(posix.dirname(document), decodeURI(path)).replace(/\/$/, "");
  const address = pageAddress(target);
  if (address === undefined) {
    throw new Error(`${document} links to ${href}, which has no page on the site; add ${target} to site/addresses.ts.`);
  }
  return `/${address.replace(/(^|\/)index$/, "$1")}${anchor === undefined ? "" : `#${anchor}`}`;
}

function slashed(path: string): string {
  return path.replaceAll("\\", "/");
}

/** In `docs/reference.md` each public name leads to its place on the page of its entry: a heading of level 2 names the entry. */
export function linkReference(markdown: MarkdownRenderer): void {
  markdown.core.ruler.push("link_reference", ({ tokens, env, Token }) => {
    if (!/docs[/\\]reference\.md$/.test((env as { realPath?: string; path: string }).realPath ?? env.path)) return;
    const file = join(repositoryRoot, apiAddressesFile);
    const addresses = existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as ApiAddresses) : {};
    let names: Readonly<Record<string, string>> = {};
    for (const [index, token] of tokens.entries()) {
      if (token.type !== "inline") continue;
      const before = tokens[index - 1];
      if (before?.type === "heading_open" && before.tag === "h2") names = addresses[token.content] ?? {};
      if (before?.type !== "td_open" || tokens[index - 2]?.type !== "tr_open") continue;
      token.children = (token.children ?? []).flatMap((child: Token) => {
        const to = child.type === "code_inline" ? names[child.content] : undefined;
        if (to === undefined) return [child];
        const open = new Token("link_open", "a", 1);
        open.attrSet("href", to);
        return [open, child, new Token("link_close", "a", -1)];
      });
    }
  });
}

/** Names of a signature lead to their declarations. The block's first line says which and where: `links:Name=/api/x#Name,…`. */
export function linkSignatures(base: string): ShikiTransformer {
  return {
    name: "link-signatures",
    line(line) {
      const [, list = ""] = / links:(\S+)/.exec(` ${this.options.meta?.__raw ?? ""}`) ?? [];
      if (list === "") return;
      const links = new Map(list.split(",").map((pair) => pair.split("=") as [name: string, to: string]));
      for (const span of line.children) {
        const [text] = span.type === "element" ? span.children : [];
        if (span.type !== "element" || text?.type !== "text") continue;
        const [, before = "", name = "", after = ""] = /^(\s*)(\w+)(\s*)$/.exec(text.value) ?? [];
        const to = links.get(name);
        if (to === undefined) continue;
        span.children = [
          { type: "text", value: before },
          {
            type: "element",
            tagName: "a",
            properties: { href: `${base}${to.slice(1)}` },
            children: [{ type: "text", value: name }],
          },
          { type: "text", value: after },
        ];
      }
    },
  };
}

/** Addresses in HTML of generated pages get the base, which VitePress gives to links of Markdown only. */
export function baseForHtml(markdown: MarkdownRenderer, base: string): void {
  markdown.core.ruler.push("base_for_html", ({ tokens }) => {
    for (const { children } of tokens) {
      for (const token of children ?? []) {
        if (token.type === "html_inline") token.content = token.content.replace(/^<a href="\//, `<a href="${base}`);
      }
    }
  });
}
