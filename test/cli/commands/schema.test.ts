// `troupe schema`: the list, one schema, files in a folder, the agents of a file.
import { Ajv2020 } from "ajv/dist/2020.js";
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { workFolder } from "../../e2e/cli-process.ts";
import { troupe } from "../support/in-process.ts";

const files = {
  "team.mjs": `import { clientTool, defineAgent, defineTool, subagent } from "troupe";
import { scriptedModel } from "troupe/testing";
import { z } from "${new URL("../../../node_modules/zod/index.js", import.meta.url).href}";
const model = scriptedModel("x");
const look = defineTool({ name: "look", description: "Looks.", parameters: z.object({ city: z.string() }), execute: () => "sunny" });
const pick = clientTool({ name: "pick", description: "Asks for a date.", parameters: z.object({ day: z.string() }) });
const writer = defineAgent({ name: "writer", model });
export const agent = defineAgent({ name: "desk", model, output: z.object({ degrees: z.number() }), tools: [look, pick, subagent(writer, { description: "Writes." })] });
`,
  "broken.mjs": "export const agent = 1;\n",
  "agent.yaml":
    "apiVersion: tealagents/v1alpha1\nname: plain\nversion: 1\nspec: { agent: { model: offline, system_prompt: Help } }\n",
};

let folder: ReturnType<typeof workFolder>;
beforeAll(() => {
  folder = workFolder(files);
});
afterAll(() => folder.remove());
const at = (...names: readonly string[]): string => join(folder.path, ...names);

const jsonOf = async (...words: readonly string[]): Promise<Record<string, unknown>> => {
  const { code, out } = await troupe(["schema", ...words]);
  expect(code).toBe(0);
  return JSON.parse(out.join("\n")) as Record<string, unknown>;
};

test("without a name it lists the schemas, each with a line, and each can be printed", async () => {
  const { code, out } = await troupe(["schema"]);
  expect(code).toBe(0);
  const names = out.slice(1).map((line) => line.split("  ")[0] ?? "");
  expect(names).toEqual(
    expect.arrayContaining(["agent-yaml", "skill", "mcp-config", "eval-cases", "event", "openapi"]),
  );
  for (const name of names) {
    const document = await jsonOf(name);
    const head = {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      $id: `urn:troupe:schema:${name}`,
      title: expect.any(String),
      description: expect.stringMatching(/\.$/),
    };
    expect(document).toMatchObject(name === "openapi" ? { openapi: "3.1.1", info: { title: "troupe" } } : head);
  }
});

describe("--out", () => {
  test("writes all of them, and again over its own files", async () => {
    const first = await troupe(["schema", "--out", at("all", "schemas")]);
    expect(first.code).toBe(0);
    const names = readdirSync(at("all", "schemas")).sort();
    expect(names).toContain("mcp-config.schema.json");
    expect(names).toContain("openapi.json");
    expect(first.out).toHaveLength(names.length);
    // As an earlier version has left it.
    const older = {
      ...(JSON.parse(readFileSync(at("all", "schemas", "skill.schema.json"), "utf8")) as object),
      type: "null",
    };
    writeFileSync(at("all", "schemas", "skill.schema.json"), JSON.stringify(older));
    expect((await troupe(["schema", "--out", at("all", "schemas")])).code).toBe(0);
    expect(JSON.parse(readFileSync(at("all", "schemas", "skill.schema.json"), "utf8"))).toEqual(await jsonOf("skill"));
    expect(readdirSync(at("all", "schemas")).sort()).toEqual(names);
  });

  test("writes one if it is named", async () => {
    expect((await troupe(["schema", "skill", "--out", at("one")])).code).toBe(0);
    expect(readdirSync(at("one"))).toEqual(["skill.schema.json"]);
  });

  test("overwrites no other file, and then writes none, without --force", async () => {
    mkdirSync(at("other"));
    writeFileSync(at("other", "openapi.json"), '{"openapi":"3.1.1","info":{"title":"Shop"}}');
    const refused = await troupe(["schema", "--out", at("other")]);
    expect(refused.code).toBe(2);
    expect(refused.notes.join()).toMatch(/openapi\.json exists; give another file, or --force to overwrite it/);
    expect(readdirSync(at("other"))).toEqual(["openapi.json"]);
    expect((await troupe(["schema", "--out", at("other"), "--force"])).code).toBe(0);
    expect(readFileSync(at("other", "openapi.json"), "utf8")).toContain('"troupe"');
  });

  test("replaces a link, not the file to which it leads", async () => {
    mkdirSync(at("linked"));
    writeFileSync(at("mine.json"), "{}");
    symlinkSync(at("mine.json"), at("linked", "skill.schema.json"));
    expect((await troupe(["schema", "skill", "--out", at("linked")])).code).toBe(2);
    expect((await troupe(["schema", "skill", "--out", at("linked"), "--force"])).code).toBe(0);
    expect(readFileSync(at("mine.json"), "utf8")).toBe("{}");
  });

  test("needs a folder", async () => {
    const { code, notes } = await troupe(["schema", "--out", at("team.mjs")]);
    expect([code, notes.join()]).toEqual([2, expect.stringContaining("team.mjs")]);
  });
});

describe("an agent file", () => {
  test("has the input, the output and the tools of its agents and their subagents", async () => {
    const agents = (await jsonOf(at("team.mjs"))) as unknown as Record<string, unknown>[];
    expect(agents.map(({ agent }) => agent)).toEqual(["desk", "writer"]);
    const ajv = new Ajv2020({ strict: false });
    const desk = agents[0] as { input: object; output: object; tools: Record<string, object> };
    expect(Object.keys(desk.tools)).toEqual(["look", "pick", "writer"]);
    const isFit = (schema: object, value: unknown): boolean => ajv.compile(schema)(value);
    expect([
      isFit(desk.input, "Hello"),
      isFit(desk.input, [{ type: "text", text: "a" }]),
      isFit(desk.input, 1),
    ]).toEqual([true, true, false]);
    expect([isFit(desk.output, { degrees: 1 }), isFit(desk.output, {})]).toEqual([true, false]);
    expect([isFit(desk.tools["look"] ?? {}, { city: "Kiel" }), isFit(desk.tools["look"] ?? {}, {})]).toEqual([
      true,
      false,
    ]);
    expect(isFit(desk.tools["pick"] ?? {}, {})).toBe(false);
    expect(agents[1]).toMatchObject({ output: null, tools: {} });
  });

  test("--agent prints one, --out writes a file for each schema", async () => {
    expect(await jsonOf(at("team.mjs"), "--agent", "writer")).toMatchObject({ agent: "writer", output: null });
    expect((await troupe(["schema", at("team.mjs"), "--out", at("team")])).code).toBe(0);
    expect(readdirSync(at("team")).sort()).toEqual([
      "desk.input.schema.json",
      "desk.output.schema.json",
      "desk.tool-look.schema.json",
      "desk.tool-pick.schema.json",
      "desk.tool-writer.schema.json",
      "writer.input.schema.json",
    ]);
    expect((await troupe(["schema", at("team.mjs"), "--out", at("team")])).code).toBe(0);
  });

  test("may be YAML", async () => {
    expect(await jsonOf(at("agent.yaml"), "--agent", "plain")).toMatchObject({ agent: "plain", tools: {} });
  });
});

test.each([
  [["mcp-confg"], /there is no schema "mcp-confg": did you mean mcp-config\? Give one of agent-yaml, .*an agent file/],
  [["nothing"], /there is no schema "nothing" *Give one of/],
  [["skill", "--force"], /--force is for --out DIR/],
  [["--agent", "desk"], /--agent names an agent of a file; give the file too/],
  [["team.mjs"], /there is no file team\.mjs/],
])("schema %j is refused with a hint", async (words, hint) => {
  const { code, out, notes } = await troupe(["schema", ...words]);
  expect([code, out, notes.join(" ")]).toEqual([2, [], expect.stringMatching(hint)]);
});

test("an agent that the file does not have, and a file without agents, are refused", async () => {
  const unknown = await troupe(["schema", at("team.mjs"), "--agent", "boss"]);
  expect([unknown.code, unknown.notes.join()]).toEqual([
    2,
    expect.stringContaining('has no agent "boss"; it has "desk", "writer"'),
  ]);
  expect((await troupe(["schema", at("broken.mjs")])).notes.join()).toContain("exports no agent");
});
