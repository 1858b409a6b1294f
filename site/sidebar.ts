/**
 * The sidebar, in the order of a learner. A test compares it with the files: each document is in it, and each entry has a document.
 * Folders that grow (other frameworks, decisions, examples, entries of the package) are listed from their files.
 */
import { publicEntries, readManifest } from "../scripts/manifest.ts";
import { documents, exampleAddress, exampleFiles, pageAddress, titleOf } from "./addresses.ts";
import { apiPagePath, apiSlug } from "./api-entries.ts";

/** Only what leads to a page may be collapsed: VitePress makes a button within a button of other headings. */
export interface SidebarItem {
  readonly text: string;
  readonly link?: string;
  readonly collapsed?: boolean;
  readonly items?: SidebarItem[];
}

/** Titles that say too little in a list, or too much. */
const shortTitles: Readonly<Record<string, string>> = {
  "README.md": "What troupe is",
  "CONTRIBUTING.md": "Contributing",
  "SECURITY.md": "Security policy",
  "bench/README.md": "Bench",
};

export function sidebar(): SidebarItem[] {
  return [
    group("Start", ["README.md", "first-steps", "coding-agents"]),
    group("Concepts", ["turns", "tools", "durability", "budgets", "events", "context"]),
    group("Guides", [
      "models",
      "providers",
      "people",
      "subagents",
      "schedules",
      "remote-agents",
      "mcp",
      "hooks",
      "kit",
      "memory",
      "stores",
      "inspector",
      "testing",
      "crash-tests",
      "fork",
      "replay",
      "audit",
      "deletion",
      "evals",
      "loop",
      "react",
      "state",
    ]),
    group("Serving", ["serving", "client", "openai", "ai-sdk", "ag-ui", "a2a", "mcp-server"]),
    examples(),
    ...otherFrameworks(),
    reference(),
    group("Operations", ["deploy", "distribution", "observability", "security", "chaos", "runtimes", "versions"]),
    project(),
  ];
}

/** The address of a page as VitePress takes it: `/tools`, or `/decisions/` for the first page of a folder. */
export function siteLink(path: string): string {
  return `/${pageAddress(path) ?? ""}`.replace(/\/index$/, "/");
}

/** Pages are names of files in `docs/`, or paths from the root of the repository. */
function group(text: string, pages: readonly string[]): SidebarItem & { readonly items: SidebarItem[] } {
  return { text, items: pages.map((page) => itemOf(page.endsWith(".md") ? page : `docs/${page}.md`)) };
}

function itemOf(path: string): SidebarItem {
  return { text: shortTitles[path] ?? titleOf(path), link: siteLink(path) };
}

function pagesIn(folder: string): string[] {
  return documents().filter((path) => path.startsWith(`docs/${folder}/`) && !path.endsWith("/README.md"));
}

function examples(): SidebarItem {
  const items = exampleFiles().map((path) => ({ text: exampleTitle(path), link: `/${exampleAddress(path)}` }));
  return { text: "Examples", link: "/examples/", collapsed: true, items };
}

/** `examples/02-tools.ts` is `02 tools`; other files keep their paths. */
function exampleTitle(path: string): string {
  const name = path.slice("examples/".length);
  const [, number = "", words] = /^(\d\d)-(.*)\.ts$/.exec(name) ?? [];
  return words === undefined ? name : `${number} ${words.replaceAll("-", " ")}`;
}

function otherFrameworks(): SidebarItem[] {
  const index = "docs/coming-from/README.md";
  const heading = documents().includes(index) ? { link: siteLink(index), collapsed: true } : {};
  const pages = pagesIn("coming-from");
  return pages.length === 0 ? [] : [{ ...group("Coming from …", pages), ...heading }];
}

function reference(): SidebarItem {
  const entries = publicEntries(readManifest()).map((entry) => ({
    text: entry,
    link: siteLink(apiPagePath(apiSlug(entry))),
  }));
  const api = { text: "API", link: siteLink(apiPagePath("index")), collapsed: true, items: entries };
  const { text, items } = group("Reference", ["options", "reference", "cli"]);
  return { text, items: [...items, api] };
}

function project(): SidebarItem {
  const { text, items } = group("Project", [
    "architecture",
    "requirements",
    "development",
    "CONTRIBUTING.md",
    "bench/README.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "CODE_OF_CONDUCT.md",
  ]);
  const decisions = { ...group("Decisions", pagesIn("decisions")), link: "/decisions/", collapsed: true };
  return { text, items: [...items, decisions] };
}
