// Data sets for evals: cases in files, with the line of every fault, and cases made of stored runs.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import {
  type AgentDefinition,
  createRuntime,
  defineAgent,
  InvalidInputError,
  memoryStores,
  type Stores,
} from "../../src/index.ts";
import { casesFrom, type CasesFilter, readCases, runCase, scriptedModel } from "../../src/testing/index.ts";
import { classicValues, hostile } from "../support/wrong-values.ts";
import { desk } from "./evals-cast.ts";

function fileOf(name: string, text: string): string {
  const folder = mkdtempSync(join(tmpdir(), "troupe-cases-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const two = [
  {
    name: "cases.jsonl",
    text: '{"input":"One."}\n\n{"name":"b","input":"Two.","expected":{"order":"7"}}\n',
    lines: [1, 3],
  },
  {
    name: "cases.json",
    text: '[\n  {"input":"One."},\n  {"name":"b","input":"Two.",\n   "expected":{"order":"7"}}\n]\n',
    lines: [2, 3],
  },
  {
    name: "cases.yaml",
    text: "- input: One.\n# comment\n- name: b\n  input: Two.\n  expected: { order: '7' }\n",
    lines: [1, 3],
  },
];

describe("readCases", () => {
  // Editors of Windows begin a file with a byte order mark.
  const marked = two.map((one) => ({ ...one, text: `\ufeff${one.text}` }));

  test.each([...two, ...marked])("reads $name", async ({ name, text, lines: [line] }) => {
    const path = fileOf(name, text);
    const cases = [
      { name: `${name}:${line}`, input: "One." },
      { name: "b", input: "Two.", expected: { order: "7" } },
    ];
    expect(await readCases(path)).toEqual(cases);
    expect(await readCases(pathToFileURL(path))).toEqual(cases);
  });

  test("applies a schema and its transforms", async () => {
    const schema = z.object({ input: z.string().transform((text) => text.toUpperCase()) });
    expect(await readCases(fileOf("a.jsonl", '{"input":"one"}'), { schema })).toEqual([{ input: "ONE" }]);
  });

  test.each(two)("names the line of a case that does not match: $name", async ({ name, text, lines: [, line] }) => {
    const path = fileOf(name, text.replace("expected", "expcted"));
    await expect(readCases(path)).rejects.toThrow(`${path}:${line}: `);
    const schema = z.object({ input: z.literal("One.") });
    await expect(readCases(path, { schema })).rejects.toThrow(`${path}:${line}: input: `);
  });

  test.each([
    ["a.jsonl", '{"input":"One."}\n{"input":', /a\.jsonl:2: this is not valid JSON/],
    ["a.json", "- input: One.", /a\.json: this is not valid JSON/],
    ["a.json", '{"input":"One."}', /a\.json: expected a list of cases/],
    ["a.json", "[]", /a\.json has no case/],
    ["a.yaml", "- input: 'One.\n- b", /a\.yaml:\d+: /],
    ["a.yaml", "- *nothing", /a\.yaml:1: /],
    ["a.jsonl", "\n\n", /a\.jsonl has no case/],
    ["a.jsonl", '{"name":"b","input":"1"}\n{"name":"b","input":"2"}', /a\.jsonl:2: line 1 has a case "b" too/],
    ["a.csv", "input\nOne.", /a data set is a file whose name ends with \.json, \.jsonl, \.yaml or \.yml/],
  ])("refuses %s %#", async (name, text, message) => {
    await expect(readCases(fileOf(name, text))).rejects.toThrow(message);
  });

  test("refuses wrong values", async () => {
    await expect(readCases("/nowhere/a.jsonl")).rejects.toThrow(/nowhere/);
    await expect(readCases(new URL("https://example.com/a.jsonl"))).rejects.toThrow("must be a path or a file: URL");
    const path = fileOf("a.jsonl", '{"input":"One."}');
    for (const value of [...classicValues(), hostile()]) {
      await expect(readCases(value as never)).rejects.toThrow(InvalidInputError);
      await expect(readCases(path, { schema: value ?? null } as never)).rejects.toThrow(InvalidInputError);
    }
    await expect(readCases(path, { parameters: 1 } as never)).rejects.toThrow("did you mean schema?");
  });

  test("names a case that the schema itself cannot check", async () => {
    const schema = z.object({}).refine(() => {
      throw new Error("the check is broken");
    });
    await expect(readCases(fileOf("a.jsonl", "{}"), { schema })).rejects.toThrow(
      /a\.jsonl:1: the schema cannot check this case: .*broken/,
    );
  });
});

const echo = defineAgent({
  name: "echo",
  model: scriptedModel(() => "The key is sk-abcdefghijklmnopqrstuvwxyz123456, and Rosebud."),
});

async function ran(definition: AgentDefinition, inputs: Readonly<Record<string, readonly string[]>>): Promise<Stores> {
  const stores = memoryStores();
  const runtime = await createRuntime({ agents: [definition, echo], stores: { ...stores, close: async () => {} } });
  for (const [agentId, texts] of Object.entries(inputs)) {
    const agent = await runtime.agent(agentId.startsWith("echo") ? echo : definition, { agentId });
    await agent.start();
    for (const text of texts) await agent.executeTurn(text).result;
  }
  await runtime.shutdown();
  return stores;
}

describe("casesFrom", () => {
  test("takes the first turns of the named agents, newest first", async () => {
    const stores = await ran(desk(), {
      one: ["Refund order 7.", "Refund order 8."],
      "echo-1": ["Hello."],
      two: ["Refund order 9."],
    });
    const cases = await casesFrom(stores, { agent: "desk" });
    expect(cases.map(({ name }) => name).toSorted()).toEqual(["one", "two"]);
    const one = cases.find(({ name }) => name === "one");
    expect(one).toMatchObject({
      input: "Refund order 7.",
      expected: { order: "7", refunded: 40 },
      stopReason: "completed",
    });
    for (const { input, expected } of cases) expect((await runCase(desk(), input)).output).toEqual(expected);
    expect(await casesFrom(stores, { agent: "desk", limit: 1 })).toHaveLength(1);
    expect(await casesFrom(stores, { agent: "nobody" })).toEqual([]);
  });

  test("filters by time and by the end", async () => {
    const stores = await ran(desk("fails"), { one: ["Refund order 7."] });
    expect(await casesFrom(stores, { agent: "desk" })).toEqual([]);
    const [failed] = await casesFrom(stores, { agent: "desk", endedWith: ["error"] });
    const created = failed?.createdAt ?? 0;
    const at = (ms: number) => new Date(created + ms);
    const count = async (filter: Partial<CasesFilter>) =>
      (await casesFrom(stores, { agent: "desk", endedWith: ["error"], ...filter })).length;
    expect(await count({ since: at(0), until: at(1) })).toBe(1);
    expect([await count({ since: at(1) }), await count({ until: at(0) })]).toEqual([0, 0]);
  });

  test("redacts secrets in input and expected output", async () => {
    const stores = await ran(desk(), { "echo-1": ["My password=hunter2hunter2, Rosebud"] });
    const text = JSON.stringify(await casesFrom(stores, { agent: "echo", secrets: ["Rosebud"] }));
    expect(text).toContain("[redacted]");
    expect(text).not.toMatch(/hunter2|Rosebud|abcdefghij/);
  });

  test("reads more than a page of runs", async () => {
    const inputs = Object.fromEntries(Array.from({ length: 130 }, (_, index) => [`echo-${index}`, ["Hello."]]));
    const stores = await ran(desk(), inputs);
    expect(await casesFrom(stores, { agent: "echo", limit: 1_000 })).toHaveLength(130);
    expect(await casesFrom(stores, { agent: "echo" })).toHaveLength(100);
  });

  test("refuses wrong values", async () => {
    const stores = memoryStores();
    const strange: unknown[] = [];
    for (const value of [...classicValues(), hostile()]) {
      await expect(casesFrom(value as never, { agent: "desk" })).rejects.toThrow(InvalidInputError);
      for (const name of ["since", "until", "endedWith", "limit", "tenant", "secrets"]) {
        const outcome = await casesFrom(stores, { agent: "desk", [name]: value }).catch((error: unknown) => error);
        if (outcome instanceof Error && !(outcome instanceof InvalidInputError)) strange.push([name, outcome]);
      }
    }
    expect(strange).toEqual([]);
    await expect(casesFrom(stores, {} as never)).rejects.toThrow(/agent/);
    await expect(casesFrom(stores, { agent: "desk", from: new Date() } as never)).rejects.toThrow(
      "did you mean since?",
    );
    await expect(casesFrom(stores, { agent: "desk", since: "yesterday" } as never)).rejects.toThrow(
      "expected a valid Date",
    );
    await expect(casesFrom(stores, { agent: "desk", endedWith: ["fine"] } as never)).rejects.toThrow("endedWith[0]");
  });
});
