// The JSON Schemas of `troupe schema` accept the files that troupe reads, and refuse what it refuses, as far as JSON Schema can say it.
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { parse } from "yaml";
import { repositoryRoot } from "../../../scripts/run-command.ts";
import { readReport, reportJson } from "../../../src/cli/eval/eval-report.ts";
import { publishedSchemas } from "../../../src/cli/schema/published-schemas.ts";
import { defineAgent, run, type TroupeEvent } from "../../../src/index.ts";
import { parseSkill } from "../../../src/kit/skill-file.ts";
import { readMcpConfig } from "../../../src/mcp/mcp-config.ts";
import { lockText, readLock } from "../../../src/mcp/mcp-lock.ts";
import { pinnedToolsOf } from "../../../src/mcp/pinned-tool.ts";
import { memoryMcpTokens } from "../../../src/mcp/mcp-token-store.ts";
import { readTealFile } from "../../../src/server/teal/agent-yaml.ts";
import { readCatalog } from "../../../src/server/teal/catalog.ts";
import { readRunFile } from "../../../src/stores/index.ts";
import { readModelRecording } from "../../../src/testing/model-recording.ts";
import { readCases, recordedModel, scriptedModel } from "../../../src/testing/index.ts";
import { workFolder } from "../../e2e/cli-process.ts";
import { reportOf } from "../eval/reports.ts";
import { troupe } from "../support/in-process.ts";

async function checkOf(name: string): Promise<ValidateFunction> {
  const document = await publishedSchemas.find((schema) => schema.name === name)?.document();
  expect(document).toMatchObject({ $schema: "https://json-schema.org/draft/2020-12/schema" });
  const ajv = new Ajv2020({ strict: true, strictTypes: false, strictRequired: false });
  addFormats.default(ajv);
  return ajv.compile(document ?? {});
}

function write(name: string, content: string): string {
  const folder = mkdtempSync(join(tmpdir(), "troupe-schema-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, name), content);
  return join(folder, name);
}

/** Whether the parser accepts a value of the format. */
type Reads = (value: unknown) => Promise<boolean>;

async function accepts(work: () => unknown): Promise<boolean> {
  try {
    await work();
    return true;
  } catch {
    return false;
  }
}

/** Whether no server of the file is an error. */
function readsConfig(value: unknown): Promise<boolean> {
  return accepts(() => {
    const reading = { environment: {}, inputs: {}, servers: {}, only: undefined, pin: undefined };
    const file = write("mcp.json", JSON.stringify(value));
    const [broken] = readMcpConfig(file, { ...reading, tokens: memoryMcpTokens() }).filter(
      ({ options }) => options instanceof Error,
    );
    if (broken !== undefined) throw broken.options as Error;
  });
}

const agent = { model: "offline", system_prompt: "Help." };
const file = { apiVersion: "tealagents/v1alpha1", name: "desk", version: 0.1, spec: { agent } };
const skillHead = { name: "pdf", description: "Reads forms." };
const server = { command: "npx" };
const remote = { url: "https://tools.example.com/mcp" };
const lock = {
  version: 1,
  servers: { desk: { era: "modern", tools: [] as object[] } },
};
const tool = { tool_id: "mail-send", governance: { requires_hitl: true } };
const recording = { format: "troupe.model-recording/1", models: [], calls: [] };

interface Format {
  readonly reads: Reads;
  readonly good: readonly unknown[];
  readonly bad: readonly unknown[];
}

const withAgent = (more: object): object => ({ ...file, spec: { agent: { ...agent, ...more } } });
const withServer = (more: object): object => ({ mcpServers: { desk: { ...server, ...more } } });
const withOwn = (troupe: unknown): object => withServer({ troupe });
const withAuth = (auth: unknown): object => ({ servers: { desk: { ...remote, troupe: { auth } } } });

const formats: Readonly<Record<string, Format>> = {
  "agent-yaml": {
    reads: (value) => accepts(() => readTealFile(JSON.stringify(value), "agent.yaml")),
    good: [
      file,
      { ...file, own_field: 1, description: null, version: "v2" },
      { ...file, metadata: { skills: [{ id: "a", name: "A", description: "", tags: ["b"], examples: null }] } },
      withAgent({ temperature: 1, max_tokens: 1, reasoning_effort: "low", plugins: ["mail"], remote_plugins: [] }),
      withAgent({ mcp_servers: [{ name: "files", command: "npx", args: ["-y"], env: { A: "b" }, timeout: 0.5 }] }),
    ],
    bad: [
      {},
      { ...file, apiVersion: "tealagents/v2" },
      { ...file, apiVersion: undefined },
      { ...file, name: "a b" },
      { ...file, name: "x".repeat(65) },
      { ...file, version: true },
      { ...file, spec: {} },
      { ...file, metadata: { skills: [{ id: "a" }] } },
      withAgent({ model: " " }),
      withAgent({ system_prompt: undefined }),
      withAgent({ temperature: 1.5 }),
      withAgent({ max_tokens: 0.5 }),
      withAgent({ reasoning_effort: "most" }),
      withAgent({ plugins: "mail" }),
      withAgent({ remote_plugins: ["x"] }),
      withAgent({ mcp_servers: [{ name: "a__b", command: "x" }] }),
      withAgent({ mcp_servers: [{ name: "a", timeout: 0 }] }),
      withAgent({ mcp_servers: [{ name: "a", tool_governance_overrides: { x: { requires_hitl: "yes" } } }] }),
    ],
  },
  "plugin-catalog": {
    reads: (value) => accepts(() => readCatalog(write("catalog.json", JSON.stringify(value)), { isNamed: true })),
    good: [{ plugins: [] }, { plugins: [{ plugin_id: "mail", tools: [tool, { tool_id: "x", auth: { any: 1 } }] }] }],
    bad: [
      {},
      [],
      { plugins: [{ plugin_id: "mail" }] },
      { plugins: [{ plugin_id: "m", tools: [{ ...tool, tool_id: 1 }] }] },
    ],
  },
  skill: {
    reads: async (value) => (await parseSkill(`---\n${JSON.stringify(value)}\n---\n`, "pdf")).ok,
    good: [
      skillHead,
      {
        ...skillHead,
        license: "MIT",
        compatibility: "pdftk",
        metadata: { v: 1, a: "b" },
        "allowed-tools": "Read",
        own: [],
      },
    ],
    bad: [
      {},
      { name: "pdf" },
      { ...skillHead, name: "PDF" },
      { ...skillHead, description: " " },
      { ...skillHead, description: "x".repeat(1_025) },
      { ...skillHead, compatibility: "" },
      { ...skillHead, metadata: ["a"] },
      { ...skillHead, "allowed-tools": 1 },
    ],
  },
  "mcp-config": {
    reads: readsConfig,
    good: [
      { mcpServers: {} },
      {
        servers: { desk: remote, off: { disabled: true } },
        inputs: [{ id: "token", type: "promptString", password: true }],
      },
      withServer({ type: "stdio", args: ["-y"], env: { A: "b", N: 1 }, cwd: ".", alwaysAllow: ["a"] }),
      { servers: { desk: { ...remote, type: "http", headers: { "X-Team": "a" } } } },
      withOwn({ name: "docs", approval: "writes", trust: true, connectTimeoutMs: 1_000, pin: false }),
      withOwn({ tools: { pay: false, read: { effect: "none", needsApproval: true, timeoutMs: 1, rename: "look" } } }),
      withOwn({ tools: { pay: { idempotencyArgument: "key" } } }),
      withAuth({ token: "abc" }),
      withAuth({ oauth: { scopes: ["read"], client: { clientId: "a", issuer: "https://login.example.com" } } }),
      withAuth({ clientCredentials: { clientId: "a", clientSecret: "b", issuer: "https://login.example.com" } }),
    ],
    bad: [
      {},
      { servers: [] },
      { servers: {}, mcpServers: {} },
      { servers: {}, inputs: {} },
      { servers: { desk: {} } },
      { servers: { desk: [] } },
      { servers: { desk: { ...server, ...remote } } },
      withServer({ type: "ws" }),
      withServer({ args: ["a", 5] }),
      withServer({ args: "a" }),
      withServer({ env: { A: true } }),
      withServer({ command: " " }),
      withServer({ disabled: "no" }),
      { servers: { desk: { ...remote, headers: { "X-Pin": 7 } } } },
      withOwn([]),
      withOwn({ trusted: true }),
      withOwn({ trust: 1 }),
      withOwn({ name: "a__b" }),
      withOwn({ approval: "all" }),
      withOwn({ connectTimeoutMs: 0 }),
      withOwn({ pin: true }),
      withOwn({ tools: { pay: true } }),
      withOwn({ tools: { pay: { effect: "twice" } } }),
      withOwn({ tools: { pay: { timeout: 1 } } }),
      withOwn({ tools: { pay: { rename: "a b" } } }),
      withAuth({}),
      withAuth({ token: "a", oauth: {} }),
      withAuth({ oauth: { scope: "read" } }),
      withAuth({ clientCredentials: { clientId: "a" } }),
    ],
  },
  "mcp-lock": {
    reads: (value) => accepts(() => readLock(write("mcp.lock.json", JSON.stringify(value)))),
    good: [
      lock,
      JSON.parse(
        lockText(
          new Map([
            [
              "desk",
              {
                era: "legacy" as const,
                tools: pinnedToolsOf(
                  [{ name: "pay", description: "Pays.\nAsks.", inputSchema: { type: "object" } }],
                  String,
                ).tools,
              },
            ],
          ]),
        ),
      ) as unknown,
    ],
    bad: [
      {},
      { ...lock, version: 2 },
      { ...lock, more: 1 },
      { version: 1, servers: { desk: { era: "new", tools: [] } } },
      { version: 1, servers: { desk: { era: "modern", tools: [{ name: "", hash: "" }] } } },
    ],
  },
  "eval-cases": {
    reads: (value) => accepts(async () => await readCases(write("cases.json", JSON.stringify(value)))),
    good: [[{ input: "Hello" }], [{ name: "a", input: "b", expected: { any: [1, null] } }]],
    bad: [[], {}, [{}], [{ input: "" }], [{ input: "a", name: "" }], [{ input: "a", output: "b" }], ["a"]],
  },
  "eval-report": {
    reads: (value) => accepts(async () => await readReport(write("report.json", JSON.stringify(value)))),
    good: [JSON.parse(reportJson(reportOf({ a: [true, false] }))) as unknown],
    bad: [
      {},
      { format: "troupe.eval/2" },
      { ...reportOf({ a: [true] }), repeat: 0 },
      reportOf({}, { cases: [{ file: "a", name: "b", attempts: [] }] }),
    ],
  },
  "model-recording": {
    reads: (value) => accepts(async () => await readModelRecording(write("calls.json", JSON.stringify(value)))),
    good: [recording, { ...recording, models: [{ provider: "openai", name: "gpt-5-mini", contextWindow: 1 }] }],
    bad: [
      {},
      { ...recording, format: "troupe.model-recording/2" },
      { ...recording, more: 1 },
      { ...recording, calls: [{ key: "a", occurrence: 0, request: {}, deltas: [] }] },
      { ...recording, models: [{ name: "x" }] },
    ],
  },
};

describe.each(Object.entries(formats))("%s", (name, { reads, good, bad }) => {
  test.each(good.map((value) => [JSON.stringify(value).slice(0, 100), value]))("accepts %s", async (_, value) => {
    const check = await checkOf(name);
    expect({ schema: check(value), errors: check.errors, parser: await reads(value) }).toEqual({
      schema: true,
      errors: null,
      parser: true,
    });
  });

  test.each(bad.map((value) => [JSON.stringify(value).slice(0, 100), value]))("refuses %s", async (_, value) => {
    const check = await checkOf(name);
    // As in a file.
    const written: unknown = JSON.parse(JSON.stringify(value));
    expect({ schema: check(written), parser: await reads(written) }).toEqual({ schema: false, parser: false });
  });
});

describe("the files of the package", () => {
  test.each([
    ["agent-yaml", "examples/teal/agent.yaml"],
    ["eval-cases", "examples/evals/refunds.yaml"],
  ])("%s: %s", async (name, path) => {
    const check = await checkOf(name);
    expect([check(parse(readFileSync(join(repositoryRoot, path), "utf8"))), check.errors]).toEqual([true, null]);
  });

  test("skill: skills/troupe/SKILL.md", async () => {
    const text = readFileSync(join(repositoryRoot, "skills/troupe/SKILL.md"), "utf8");
    const check = await checkOf("skill");
    expect([check(parse(text.split("---\n")[1] ?? "")), check.errors]).toEqual([true, null]);
  });
});

test("what troupe writes fits its schemas: a recording, events, an exported run, an audit", async () => {
  const folder = workFolder({
    "agent.mjs": `import { defineAgent, defineTool } from "troupe";
import { scriptedModel } from "troupe/testing";
const look = defineTool({ name: "look", description: "Looks.", parameters: '{"type":"object"}', execute: () => "sunny" });
const model = scriptedModel(({ messages }) =>
  messages.at(-1).role === "tool" ? "It is sunny." : { toolCalls: [{ name: "look", arguments: {} }] });
export const agent = defineAgent({ name: "desk", model, tools: [look] });
`,
  });
  onTestFinished(() => folder.remove());
  vi.stubEnv("CI", "");
  onTestFinished(() => void vi.unstubAllEnvs());
  const at = (name: string): string => join(folder.path, name);
  const store = ["--store", at("jobs.db")];
  const lines = await troupe(["run", at("agent.mjs"), "Weather?", "--agent-id", "desk-1", "--json", ...store]);
  const isEvent = await checkOf("event");
  const events = lines.out.map((line) => JSON.parse(line) as TroupeEvent).filter(({ type }) => type !== undefined);
  expect(events.length).toBeGreaterThan(8);
  for (const event of events) expect([event.type, isEvent(event), isEvent.errors]).toEqual([event.type, true, null]);

  await troupe(["export", "desk-1", "--json", at("run.json"), ...store]);
  await troupe(["audit", "desk-1", "--file", at("audit.json"), ...store]);
  const model = recordedModel(scriptedModel("Yes."), { file: at("calls.json"), mode: "record" });
  await run(defineAgent({ name: "recorded", model }), "Go?");
  for (const [name, path] of [
    ["run", "run.json"],
    ["audit", "audit.json"],
    ["model-recording", "calls.json"],
  ] as const) {
    const check = await checkOf(name);
    const value = JSON.parse(readFileSync(at(path), "utf8")) as object;
    expect([name, check(value), check.errors]).toEqual([name, true, null]);
    expect([name, check({ ...value, format: "other" })]).toEqual([name, false]);
  }
  expect(readRunFile(readFileSync(at("run.json"), "utf8")).tree.rootAgentId).toBe("desk-1");
});
