// The tables of options and shapes in the documents have a row for each member, and no others.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { modelRequestSchema, modelResponseSchema } from "troupe/state";
import { repositoryRoot } from "../../scripts/run-command.ts";
import { interfacesReached } from "./source-docs.ts";

const members = interfacesReached([]);

function namesOf(...owners: readonly string[]): readonly string[] {
  return members.filter(({ owner }) => owners.includes(owner)).map(({ name }) => name);
}

/** The names in the first column of the first table after a line, one or several per row. */
function tableAfter(document: string, line: string): readonly string[] {
  const lines = readFileSync(join(repositoryRoot, document), "utf8").split("\n");
  const start = lines.findIndex((text) => text.startsWith(line));
  const first = lines.findIndex((text, index) => index >= start && text.startsWith("|---"));
  const end = lines.findIndex((text, index) => index > first && !text.startsWith("|"));
  return start < 0 ? [] : lines.slice(first + 1, end).flatMap(namesInRow);
}

function namesInRow(row: string): readonly string[] {
  const [, cell = ""] = /^\| (.*?) \|/.exec(row) ?? [];
  return [...cell.matchAll(/`(\w+)`/g)].map(([, name = ""]) => name);
}

test.each([
  ["docs/options.md", "## defineAgent", namesOf("AgentOptions")],
  ["docs/options.md", "## createRuntime", namesOf("RuntimeOptions", "RuntimeSettings")],
  ["docs/options.md", "## runtime.agent", namesOf("AgentStartOptions")],
  ["docs/first-steps.md", "### Options", namesOf("RunOptions")],
  ["docs/turns.md", "| Option |", namesOf("TurnOptions")],
  ["docs/providers.md", "| Option |", namesOf("OpenaiModelOptions")],
  ["docs/providers.md", "| `ModelRequest`", Object.keys(modelRequestSchema.shape)],
  ["docs/providers.md", "| `ModelResponse`", Object.keys(modelResponseSchema.shape)],
  ["docs/context.md", "| `CompileInput`", namesOf("CompileInput")],
])("%s, %s", (document, line, names) => {
  expect(names.length).toBeGreaterThan(5);
  expect([...tableAfter(document, line)].sort()).toEqual([...names].sort());
});
