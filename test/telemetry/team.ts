import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach } from "vitest";
import { z } from "zod";
import { type AgentDefinition, defineAgent, defineTool, subagent, textOf } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { asks, leadScript } from "../support/leads.ts";
import { calling } from "../support/turn-probes.ts";

const price = { inputPerMillion: 1, outputPerMillion: 10 };

/** A reader that fetches the requested page and returns its text. */
export function fetchingReader(delay: () => Promise<unknown> = async () => undefined): AgentDefinition {
  const fetchPage = defineTool({
    name: "fetch_page",
    description: "Fetches a page.",
    parameters: z.object({ page: z.string() }),
    effect: "none",
    execute: async ({ page }) => {
      await delay();
      return `text of ${page}`;
    },
  });
  const model = scriptedModel(
    ({ messages }) => {
      const last = messages.at(-1);
      const text = textOf(last?.content ?? "");
      return last?.role === "tool" ? `read: ${text}` : calling({ name: "fetch_page", arguments: { page: text } });
    },
    { name: "small" },
  );
  return defineAgent({ name: "reader", model, price, tools: [fetchPage] });
}

/** A lead that calls two readers concurrently. */
export function leadOfReaders(delay?: () => Promise<unknown>): AgentDefinition {
  const model = scriptedModel(leadScript([asks("reader", "north"), asks("reader", "south")]), { name: "large" });
  return defineAgent({ name: "lead", model, price, tools: [subagent(fetchingReader(delay))] });
}

/** A temporary folder for the current test. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "troupe-telemetry-"));
  folders.push(folder);
  return folder;
}

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});
