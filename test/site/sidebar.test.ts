import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { publicEntries, readManifest } from "../../scripts/manifest.ts";
import { repositoryRoot } from "../../scripts/run-command.ts";
import { documents, exampleFiles } from "../../site/addresses.ts";
import { apiPagePath, apiSlug } from "../../site/api-entries.ts";
import { type SidebarItem, sidebar, siteLink } from "../../site/sidebar.ts";

function linksOf(items: readonly SidebarItem[]): string[] {
  return items.flatMap(({ link, items: below = [] }) => [...(link === undefined ? [] : [link]), ...linksOf(below)]);
}

const links = linksOf(sidebar());

test("every document, example and entry is in the sidebar once, and nothing else is", () => {
  const pages = [
    ...documents().map(siteLink),
    ...["examples", ...exampleFiles()].map(siteLink),
    ...["index", ...publicEntries(readManifest()).map(apiSlug)].map((slug) => siteLink(apiPagePath(slug))),
  ];
  expect(links.toSorted()).toEqual(pages.toSorted());
});

test("every document of the sidebar exists and has a title", () => {
  expect(documents().filter((path) => !existsSync(join(repositoryRoot, path)))).toEqual([]);
  const texts = (items: readonly SidebarItem[]): string[] =>
    items.flatMap(({ text, items: below = [] }) => [text, ...texts(below)]);
  expect(texts(sidebar()).filter((text) => text.endsWith(".md"))).toEqual([]);
});
