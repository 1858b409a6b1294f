import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "../../../scripts/run-command.ts";

/** The tables of docs/providers.md: what is sent, and what comes back. */
const tables = [
  ["Images", "Image URLs", "Images in results", "PDF files"],
  ["Structured output", "Tool choice", "Stop sequences", "Reasoning effort"],
  ["Parallel calls", "Text beside calls", "Thoughts shown", "Thoughts sent back", "Thoughts of earlier turns"],
  ["Cached tokens", "Thinking tokens", "New events", "Errors in the stream"],
] as const;

export type Capability = (typeof tables)[number][number];

/** What the suite has found out about the families, by their names. */
const measured = new Map<string, Map<Capability, string>>();

/** Records what a case has measured. */
export function measure(family: string, capability: Capability, value: boolean | string): void {
  const own = measured.get(family) ?? new Map<Capability, string>();
  measured.set(family, own);
  own.set(capability, value === true ? "yes" : value === false ? "–" : value);
}

const row = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;

function measuredTables(): string {
  return tables
    .map((columns) => {
      const lines = [...measured].map(([name, own]) => row([name, ...columns.map((one) => own.get(one) ?? "?")]));
      return [row(["", ...columns]), `|${"---|".repeat(columns.length + 1)}`, ...lines].join("\n");
    })
    .join("\n\n");
}

const page = join(repositoryRoot, "docs", "providers.md");
const marks = ["<!-- providers -->", "<!-- end of providers -->"] as const;

/** The tables on the page, and those that the suite has measured; `npm run build:providers` writes them. */
export function providerTables(): { readonly shown: string; readonly measured: string } {
  const text = readFileSync(page, "utf8");
  const [before = "", rest = ""] = text.split(`${marks[0]}\n\n`);
  const [shown = "", after = ""] = rest.split(`\n\n${marks[1]}`);
  const now = measuredTables();
  if (process.env["TROUPE_WRITE_PROVIDERS"] === "1") {
    writeFileSync(page, `${before}${marks[0]}\n\n${now}\n\n${marks[1]}${after}`);
    return { shown: now, measured: now };
  }
  return { shown, measured: now };
}
