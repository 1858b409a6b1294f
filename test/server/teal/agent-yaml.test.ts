import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { loadTealAgent } from "../../../src/server/teal/load-teal-agent.ts";
import { scriptedModel } from "../../../src/testing/index.ts";

const root = mkdtempSync(join(tmpdir(), "teal-"));
afterAll(() => rmSync(root, { recursive: true }));
let count = 0;

/** A temporary folder with these files; returns the path of agent.yaml. */
function folderWith(files: Readonly<Record<string, string>>): string {
  const folder = join(root, String((count += 1)));
  mkdirSync(folder);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return join(folder, "agent.yaml");
}

const whole = `apiVersion: tealagents/v1alpha1
kind: Chat
name: MathAgent
version: 0.1
description: Adds
metadata:
  description: Adds numbers
  documentation_url: https://docs.test
  skills:
    - { id: add, name: Add, description: Adds, tags: [math], examples: ["5 + 3?"], input_modes: [text], output_modes: [text] }
an_own_field: 7
spec:
  agent:
    name: default
    role: adder
    model: gpt-4o
    system_prompt: You add.
    temperature: 0.1
    max_tokens: 500
    plugins: [sensitive_plugin]
`;

const plugins = `
import { defineTool } from "${new URL("../../../src/index.ts", import.meta.url).href}";
import { z } from "${new URL("../../../node_modules/zod/index.js", import.meta.url).href}";
const parameters = z.object({});
export const sensitive_plugin = [
  defineTool({ name: "delete_user_data", description: "Deletes", parameters, execute: () => "deleted" }),
  defineTool({ name: "read", description: "Reads", parameters, needsApproval: true, execute: () => "read" }),
];
export const no_tools = [];
export const no_tool = { add: 1 };
`;

const catalog = JSON.stringify({
  plugins: [
    {
      plugin_id: "sensitive_plugin",
      name: "Sensitive",
      tools: [
        {
          tool_id: "sensitive_plugin-delete_user_data",
          governance: { requires_hitl: true, cost: "high", data_sensitivity: "sensitive" },
          auth: null,
        },
        {
          tool_id: "sensitive_plugin-read",
          governance: { requires_hitl: false, cost: "low", data_sensitivity: "public" },
        },
      ],
    },
  ],
});

const small = (fields: string, agent = ""): string =>
  `apiVersion: tealagents/v1alpha1\nname: A\n${fields}\nspec:\n  agent:\n    name: default\n    model: offline\n    system_prompt: Hi\n${agent}`;

/** The message of a load that fails, without the folder. */
async function failure(files: Readonly<Record<string, string>>, options = {}): Promise<string> {
  const file = folderWith(files);
  const error: unknown = await loadTealAgent(file, options).then(
    () => undefined,
    (problem: unknown) => problem,
  );
  expect(error).toMatchObject({ code: "invalid_input" });
  return (error as Error).message.replaceAll(file.slice(0, -"agent.yaml".length), "");
}

test("T9: an agent of a YAML file has its model, prompt, limits, tools and card", async () => {
  const file = folderWith({ "agent.yaml": whole, "custom_plugins.ts": plugins, "catalog.json": catalog });
  const { definition, close, ...rest } = await loadTealAgent(file);
  await close();
  expect(rest).toEqual({
    name: "MathAgent",
    version: "0.1",
    description: "Adds",
    metadata: {
      description: "Adds numbers",
      documentation_url: "https://docs.test",
      skills: [
        {
          id: "add",
          name: "Add",
          description: "Adds",
          tags: ["math"],
          examples: ["5 + 3?"],
          input_modes: ["text"],
          output_modes: ["text"],
        },
      ],
    },
  });
  expect(definition).toMatchObject({
    name: "MathAgent",
    instructions: "You add.",
    temperature: 0.1,
    maxOutputTokens: 500,
    model: { name: "gpt-4o", provider: "openai" },
  });
  const tools = ["sensitive_plugin-delete_user_data", "sensitive_plugin-read"].map((name) =>
    definition.tools.get(name),
  );
  expect(tools.map((tool) => tool?.kind === "function" && tool.needsApproval)).toEqual([true, true]);
});

test("T9: plugins and catalog may be elsewhere; without a catalog only the code requires approvals", async () => {
  const elsewhere = folderWith({ "mine.ts": plugins, "rules.json": catalog }).slice(0, -"agent.yaml".length);
  const file = folderWith({ "agent.yaml": whole });
  const governed = await loadTealAgent(file, {
    plugins: join(elsewhere, "mine.ts"),
    catalog: join(elsewhere, "rules.json"),
  });
  const free = await loadTealAgent(file, { plugins: join(elsewhere, "mine.ts") });
  const approvals = [governed, free].map(({ definition }) => {
    const tool = definition.tools.get("sensitive_plugin-delete_user_data");
    return tool?.kind === "function" && tool.needsApproval;
  });
  expect(approvals).toEqual([true, false]);
});

test.each([
  ["0.1", "0.1"],
  ["1.0", "1.0"],
  ["0.10", "0.1"],
  ["1", "1"],
  ["1e3", "1e3"],
  ["'1.0'", "1.0"],
  ["1.0.3", "1.0.3"],
  ["v2", "v2"],
])("T9: version: %s is %j, as Python reads it", async (written, read) => {
  const { version } = await loadTealAgent(folderWith({ "agent.yaml": small(`version: ${written}`) }));
  expect(version).toBe(read);
});

test.each([
  ["gpt-5-mini", "", "low"],
  ["gpt-5", "    reasoning_effort: high\n", "high"],
  ["gpt-4o", "    reasoning_effort: high\n", null],
])("T9: the effort of %s%s is %s", async (name, effort, wanted) => {
  const text = small("version: 1", effort).replace("model: offline", `model: ${name}`);
  const asked: unknown[] = [];
  await loadTealAgent(folderWith({ "agent.yaml": text }), {
    model: (model, options) => {
      asked.push([model, options]);
      return scriptedModel([]);
    },
  });
  expect(asked).toEqual([[name, { reasoningEffort: wanted }]]);
});

describe("T9: an error names the line and the path", () => {
  test.each([
    [
      "a field of a wrong type",
      small("version: 1", "    temperature: hot\n"),
      'agent.yaml:9: spec.agent.temperature is the text "hot"; expected a number from 0 to 1',
    ],
    [
      "a number out of range",
      small("version: 1", "    temperature: 1.5\n"),
      "agent.yaml:9: spec.agent.temperature is 1.5; expected a number from 0 to 1",
    ],
    [
      "too few tokens",
      small("version: 1", "    max_tokens: 0\n"),
      "agent.yaml:9: spec.agent.max_tokens is 0; expected a whole number of at least 1",
    ],
    [
      "half a token",
      small("version: 1", "    max_tokens: 1.5\n"),
      "agent.yaml:9: spec.agent.max_tokens is 1.5; expected a whole number of at least 1",
    ],
    [
      "an unknown effort",
      small("version: 1", "    reasoning_effort: huge\n"),
      'agent.yaml:9: spec.agent.reasoning_effort is the text "huge"; expected "low", "medium" or "high"',
    ],
    [
      "a missing field",
      small("description: x"),
      "agent.yaml:1: version is missing; expected a version, for instance 0.1",
    ],
    [
      "a missing spec",
      "apiVersion: tealagents/v1alpha1\nname: A\nversion: 1\n",
      "agent.yaml:1: spec is missing; expected an object { agent }",
    ],
    [
      "a name that cannot be in a URL",
      small("version: 1").replace("name: A", "name: Math Agent"),
      'agent.yaml:2: name is the text "Math Agent"; expected a name of 1 to 64 letters, digits, "_", "-" and "."',
    ],
    [
      "a skill without an id",
      small("version: 1\nmetadata: { skills: [{ name: x }] }"),
      "agent.yaml:4: metadata.skills[0].id is missing; expected a text",
    ],
    [
      "a plugin that is a number",
      small("version: 1", "    plugins:\n      - 7\n"),
      "agent.yaml:10: spec.agent.plugins[0] is 7; expected a text",
    ],
    [
      "another version",
      small("version: 1").replace("v1alpha1", "v9"),
      'agent.yaml:1: apiVersion is "tealagents/v9"; expected "tealagents/v1alpha1"',
    ],
    [
      "no version",
      small("version: 1").replace(/^.*\n/, ""),
      'agent.yaml:1: apiVersion is missing; expected "tealagents/v1alpha1"',
    ],
    [
      "an agent without state",
      "name: A\napiVersion: skagents/v1\nkind: Sequential\n",
      'agent.yaml:2: apiVersion is "skagents/v1": stateless agents are not supported; change it to "tealagents/v1alpha1", whose spec has one agent and whose callers name a task instead of sending the history',
    ],
    [
      "remote plugins",
      small("version: 1", "    remote_plugins: [api_weather]\n"),
      "agent.yaml:9: spec.agent.remote_plugins is not supported: provide its tools as plugins, which are code next to this file",
    ],
    [
      "a server without a way to connect",
      small("version: 1", "    mcp_servers: [{ name: x }]\n"),
      "agent.yaml:9: spec.agent.mcp_servers[0] has no url",
    ],
    [
      "a server with two ways to connect",
      small("version: 1", "    mcp_servers: [{ name: x, command: run, url: 'https://a.test' }]\n"),
      'spec.agent.mcp_servers[0] has both command and url; set transport to "stdio" or "http"',
    ],
    [
      "a server of another transport",
      small("version: 1", "    mcp_servers: [{ name: x, transport: websocket, url: y }]\n"),
      'spec.agent.mcp_servers[0].transport is the text "websocket"; expected "stdio" or "http"',
    ],
    [
      "a server with a name that cannot begin the names of tools",
      small("version: 1", "    mcp_servers: [{ name: my server, command: run }]\n"),
      'spec.agent.mcp_servers[0].name is the text "my server"; expected a name of 1 to 32',
    ],
    [
      "two servers of one name",
      small("version: 1", "    mcp_servers: [{ name: x, command: run }, { name: x, command: go }]\n"),
      'spec.agent.mcp_servers[1].name is "x" a second time',
    ],
    [
      "a server that needs a login",
      small(
        "version: 1",
        "    mcp_servers: [{ name: x, url: 'https://a.test', auth_server: 'https://b.test', scopes: [c] }]\n",
      ),
      'spec.agent.mcp_servers[0].auth_server needs a store for tokens, which only code can give: loadTealAgent(file, { mcp: { "x": { auth } } })',
    ],
    [
      "a server without certificates",
      small("version: 1", "    mcp_servers: [{ name: x, url: 'https://a.test', verify_ssl: false }]\n"),
      "spec.agent.mcp_servers[0].verify_ssl is false: name the certificate authority in NODE_EXTRA_CA_CERTS instead",
    ],
    [
      "a server that gets the user in a header",
      small("version: 1", "    mcp_servers: [{ name: x, url: 'https://a.test', user_id_header: X-User }]\n"),
      "spec.agent.mcp_servers[0].user_id_header is not supported: give the header from code",
    ],
    [
      "a wrong rule of a tool",
      small(
        "version: 1",
        "    mcp_servers: [{ name: x, command: run, tool_governance_overrides: { a: { requires_hitl: 1 } } }]\n",
      ),
      "mcp_servers[0].tool_governance_overrides.a.requires_hitl is 1; expected true or false",
    ],
    [
      "a time limit of nothing",
      small("version: 1", "    mcp_servers: [{ name: x, command: run, timeout: 0 }]\n"),
      "mcp_servers[0].timeout is 0; expected a number of seconds above 0",
    ],
    [
      "a wrong address of a server",
      small("version: 1", "    mcp_servers: [{ name: x, url: 'ftp://a.test' }]\n"),
      "agent.yaml:9: spec.agent.mcp_servers[0] cannot be used: mcp(): url must be a URL",
    ],
    [
      "plugins without their code",
      small("version: 1", "    plugins: [a]\n"),
      "agent.yaml:9: spec.agent.plugins needs custom_plugins.ts or custom_plugins.js next to this file, which does not exist",
    ],
    [
      "a list instead of an object",
      "- 1\n",
      "agent.yaml:1: (root) is a list; expected an object { apiVersion, name, version, spec }",
    ],
    ["an empty file", "", "agent.yaml:1: (root) is null; expected an object { apiVersion, name, version, spec }"],
    ["invalid YAML", "name: [\n", "agent.yaml:2: "],
    ["a field twice", "name: A\nname: B\n", "agent.yaml:2: Map keys must be unique"],
  ])("%s", async (_, text, message) => {
    expect(await failure({ "agent.yaml": text })).toContain(message);
  });

  test.each([
    [
      "not_there",
      'agent.yaml:9: spec.agent.plugins[0] is "not_there": custom_plugins.ts must export a list of tools under this name',
    ],
    ["no_tools", 'agent.yaml:9: spec.agent.plugins[0] is "no_tools": custom_plugins.ts must export'],
    ["no_tool", 'agent.yaml:9: spec.agent.plugins[0] is "no_tool": custom_plugins.ts must export'],
    [
      "sensitive_plugin, sensitive_plugin",
      'agent.yaml:9: spec.agent.plugins[1] names "sensitive_plugin" a second time',
    ],
    ["toString", 'agent.yaml:9: spec.agent.plugins[0] is "toString"'],
  ])("plugins: [%s]", async (names, message) => {
    const text = small("version: 1", `    plugins: [${names}]\n`);
    expect(await failure({ "agent.yaml": text, "custom_plugins.ts": plugins })).toContain(message);
  });

  test.each([
    [
      "code that cannot be loaded",
      { "custom_plugins.ts": "throw new Error('no luck');" },
      "custom_plugins.ts cannot be loaded: no luck",
    ],
    ["a catalog of invalid JSON", { "custom_plugins.ts": plugins, "catalog.json": "{" }, "catalog.json cannot be read"],
    [
      "a catalog of another form",
      { "custom_plugins.ts": plugins, "catalog.json": '{"plugins":[{"plugin_id":"a"}]}' },
      "catalog.json: plugins[0].tools",
    ],
    [
      "a misspelt tool in the approvals of a catalog",
      { "custom_plugins.ts": plugins, "catalog.json": catalog.replace("delete_user", "delete_usr") },
      'catalog.json: plugins[0].tools[0].tool_id: the plugin "sensitive_plugin" has no tool "sensitive_plugin-delete_usr_data", which requires approval',
    ],
    [
      "credentials of an authorization server",
      { "custom_plugins.ts": plugins, "catalog.json": catalog.replace('"auth":null', '"auth":{"auth_type":"oauth2"}') },
      "catalog.json: plugins[0].tools[0].auth is not supported",
    ],
  ])("%s", async (_, files, message) => {
    expect(await failure({ "agent.yaml": whole, ...files })).toContain(message);
  });

  test("a missing file or catalog", async () => {
    expect(await failure({})).toContain("agent.yaml cannot be read: there is no such file");
    const catalogOption = { catalog: join(root, "none.json") };
    expect(await failure({ "agent.yaml": small("version: 1") }, catalogOption)).toContain("there is no catalog");
  });
});
