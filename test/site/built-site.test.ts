// The built pages as a static server gives them: each link, anchor and picture leads somewhere, and each public name is explained.
import { existsSync, globSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { pathToFileURL } from "node:url";
import MiniSearch from "minisearch";
import { beforeAll, describe, expect, test } from "vitest";
import { documents, exampleFiles } from "../../site/addresses.ts";
import { apiSlug } from "../../site/api-entries.ts";
import { siteLink } from "../../site/sidebar.ts";
import { publicNames } from "../architecture/public-names.ts";
import { buildSite, SITE_BUILD_MS, siteBase, siteFolder } from "../support/built-site.ts";

interface BuiltPage {
  /** Path of its file in the site. */
  readonly path: string;
  readonly html: string;
  readonly anchors: ReadonlySet<string>;
}

const pages = new Map<string, BuiltPage>();

beforeAll(async () => {
  await buildSite();
  for (const file of globSync("**/*.html", { cwd: siteFolder })) {
    const path = file.replaceAll("\\", "/");
    const html = readFileSync(join(siteFolder, file), "utf8");
    const anchors = new Set([...html.matchAll(/\sid="([^"]+)"/g)].map(([, id = ""]) => id));
    pages.set(path, { path, html, anchors });
  }
}, SITE_BUILD_MS);

/** The file that a static server gives for an address below the base. */
function fileOf(address: string): string {
  return address === "" || address.endsWith("/") ? `${address}index.html` : address;
}

/** Addresses in attributes, without those of other sites. */
function addressesIn(html: string): string[] {
  return [...html.matchAll(/\s(?:href|src)="([^"]*)"/g)]
    .map(([, address = ""]) => address.replaceAll("&amp;", "&"))
    .filter((address) => !/^(?:[a-z]+:|\/\/)/.test(address));
}

function pageOf(path: string): BuiltPage | undefined {
  return pages.get(
    fileOf(
      siteLink(path)
        .slice(1)
        .replace(/(?<=[^/])$/, ".html"),
    ),
  );
}

test("every link, anchor and picture of the pages is there", () => {
  let checked = 0;
  const faults = [...pages.values()].flatMap(({ path, html }) =>
    [...new Set(addressesIn(html))].flatMap((address) => {
      checked += 1;
      const { pathname, hash } = new URL(address, `http://site${siteBase}${path}`);
      if (!pathname.startsWith(siteBase)) return [`${path}: ${address} is outside ${siteBase}`];
      const target = fileOf(decodeURI(pathname.slice(siteBase.length)));
      if (!existsSync(join(siteFolder, target))) return [`${path}: ${address} leads nowhere`];
      const anchor = decodeURIComponent(hash.slice(1));
      const hasAnchor = anchor === "" || pages.get(target)?.anchors.has(anchor) === true;
      return hasAnchor ? [] : [`${path}: ${target} has no ${hash}`];
    }),
  );
  expect(faults).toEqual([]);
  expect(checked).toBeGreaterThan(5_000);
});

test("pages load nothing from other sites", () => {
  const loaded = [...pages.values()].flatMap(({ path, html }) =>
    [...html.matchAll(/<(?:script|img|iframe|link)\b[^>]*\s(?:src|href)="((?:https?:)?\/\/[^"]*)"/g)].map(
      ([, address]) => `${path}: ${address}`,
    ),
  );
  expect(loaded).toEqual([]);
  const styles = globSync("**/*.css", { cwd: siteFolder }).map((file) => readFileSync(join(siteFolder, file), "utf8"));
  expect(styles.filter((text) => /url\(["']?(?:https?:)?\/\//.test(text))).toEqual([]);
});

test("every document and every example is a page with its title", () => {
  const missing = [...documents(), "examples", ...exampleFiles()].filter(
    (path) => !/<h1[\s>]/.test(pageOf(path)?.html ?? ""),
  );
  expect(missing).toEqual([]);
});

test("every example says how it is run", () => {
  const silent = exampleFiles().filter((path) => !/npm|docker compose/.test(textOf(pageOf(path)?.html ?? "")));
  expect(silent).toEqual([]);
});

function textOf(html: string): string {
  return html
    .replaceAll(/<[^>]*>/g, "")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&amp;", "&");
}

describe("the API reference", () => {
  test.each(Object.entries(publicNames))("has every name of %s", (entry, names) => {
    const page = pages.get(`api/${apiSlug(entry)}.html`);
    expect(names.filter((name) => page?.anchors.has(name) !== true)).toEqual([]);
  });

  test.each([
    [
      "defaults with units",
      "How long a process counts as alive after its last heartbeat, in milliseconds. Default 10,000.",
    ],
    ["errors", "Throws InvalidInputError for an invalid name, description or expiry."],
    ["types that only the signatures of others name", "interface ApprovalOptions"],
    ["what the type of a schema comes to", 'readonly type: "lifecycle.changed"'],
  ])("shows %s", (_, text) => {
    expect(textOf(pages.get("api/troupe.html")?.html ?? "").replaceAll(/\s+/g, " ")).toContain(text);
  });

  test("is where the names of the reference lead", () => {
    const html = pages.get("reference.html")?.html ?? "";
    const bare = Object.entries(publicNames).flatMap(([entry, names]) =>
      names.filter((name) => !html.includes(`href="${siteBase}api/${apiSlug(entry)}.html#${name}"`)),
    );
    expect(bare).toEqual([]);
  });
});

describe("the search index", () => {
  let index: MiniSearch;
  let ids: readonly string[];

  beforeAll(async () => {
    const [file = ""] = globSync("assets/chunks/@localSearchIndexroot.*.js", { cwd: siteFolder });
    const loaded = (await import(pathToFileURL(join(siteFolder, file)).href)) as { default: string };
    index = MiniSearch.loadJSON(loaded.default, {
      fields: ["title", "titles", "text"],
      storeFields: ["title", "titles"],
    });
    ids = Object.values((JSON.parse(loaded.default) as { documentIds: Record<string, string> }).documentIds);
  });

  test("has every page", () => {
    const indexed = new Set(ids.map((id) => fileOf(id.slice(siteBase.length).replace(/#.*/, ""))));
    expect([...pages.keys()].filter((path) => path !== "404.html" && !indexed.has(path))).toEqual([]);
  });

  test.each([
    ["reserve budget", "budgets.html"],
    ["heartbeat milliseconds", "api/troupe.html#RuntimeOptions"],
    ["sqliteStores", "api/troupe-stores-sqlite.html#sqliteStores"],
    ["ToolNotStartedError", "api/troupe.html#ToolNotStartedError"],
    ["tireless", "examples/05-budgets.html"],
  ])("finds %s", (words, id) => {
    const found = index.search(words, { combineWith: "AND", prefix: true }).map((result) => String(result.id));
    expect(found.some((address) => posix.join("/", address).startsWith(`${siteBase}${id}`))).toBe(true);
  });
});
