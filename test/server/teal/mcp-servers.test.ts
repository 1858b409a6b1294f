// `mcp_servers` of an agent's YAML file.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadTealAgent } from "troupe/server";
import { createRuntime, type Tool } from "troupe";
import { memoryStores } from "troupe/stores/memory";
import { scriptedModel } from "troupe/testing";
import { expect, onTestFinished, test } from "vitest";
import { openScripted } from "../../mcp/scripted-server.ts";
import { openDesk } from "../../mcp/served-desk.ts";
import { toolTextsOf } from "../../support/journal-probes.ts";
import { classicValues, isTaken } from "../../support/wrong-values.ts";

function yamlOf(servers: readonly object[]): string {
  const folder = mkdtempSync(join(tmpdir(), "teal-mcp-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "agent.yaml");
  const agent = { name: "default", model: "offline", system_prompt: "You help.", mcp_servers: servers };
  // JSON is YAML.
  writeFileSync(
    file,
    JSON.stringify({ apiVersion: "tealagents/v1alpha1", name: "Helper", version: "1.0", spec: { agent } }),
  );
  return file;
}

const toolsOf = (tools: readonly { readonly name: string }[]) =>
  Object.fromEntries(
    (tools as readonly Tool[]).map(({ name, effect, needsApproval }) => [name, { effect, needsApproval }]),
  );

test("the agent has the tools of its servers, over stdio and HTTP", async () => {
  const [stdio, http] = [await openDesk("stdio legacy"), await openDesk("http modern")];
  const file = yamlOf([
    { name: "files", ...stdio.options, env: { DEBUG: "1" }, timeout: 30 },
    { name: "docs", transport: "http", ...http.options, headers: { "X-Team": "a" }, sse_read_timeout: 300 },
  ]);
  const model = scriptedModel(({ messages }) =>
    messages.at(-1)?.role === "user"
      ? { toolCalls: ["files", "docs"].map((name) => ({ name: `${name}__echo`, arguments: { text: name } })) }
      : "Done.",
  );
  const { definition, close } = await loadTealAgent(file, { model: () => model });
  onTestFinished(close);
  const runtime = await createRuntime({ agents: [definition], stores: memoryStores() });
  onTestFinished(() => runtime.shutdown());
  const agent = await runtime.agent("Helper", { agentId: "helper" });
  await agent.start();
  await agent.executeTurn("go").result;
  expect((await toolTextsOf(agent)).toSorted()).toEqual(["echo: docs", "echo: files"]);
});

test("rules of the file decide on approvals", async () => {
  const tools = [
    { name: "look", inputSchema: {}, annotations: { readOnlyHint: true } },
    { name: "wipe", inputSchema: {}, annotations: { destructiveHint: true } },
    { name: "send", inputSchema: {} },
  ];
  const { url } = await openScripted({ tools });
  const rules = { wipe: { requires_hitl: false, cost: "high" }, send: { requires_hitl: true } };
  const file = yamlOf([
    { name: "plain", url },
    { name: "ruled", url, tool_governance_overrides: rules },
    { name: "trusted", url, trust_level: "trusted" },
    { name: "sandboxed", url, trust_level: "sandboxed" },
    { name: "untrusted", url, trust_level: "untrusted" },
  ]);
  const { definition, close } = await loadTealAgent(file);
  onTestFinished(close);
  const found = toolsOf(definition.tools.tools);
  const approvals = (server: string) => tools.map(({ name }) => found[`${server}__${name}`]?.needsApproval);
  expect(approvals("plain")).toEqual([false, true, false]);
  expect(approvals("ruled")).toEqual([false, false, true]);
  expect(approvals("trusted")).toEqual([false, true, false]);
  expect(approvals("sandboxed")).toEqual([true, true, true]);
  expect(approvals("untrusted")).toEqual([true, true, true]);
  expect(found["trusted__look"]?.effect).toBe("none");
});

test("code gives further options of a server, such as credentials", async () => {
  const seen: (string | null)[] = [];
  const { url } = await openScripted({
    call: (_number, request, { text }) => {
      seen.push(request.headers.get("authorization"));
      return text("worked");
    },
  });
  const file = yamlOf([{ name: "docs", url, auth_server: "https://login.test", scopes: ["read"] }]);
  await expect(loadTealAgent(file, { mcp: { other: {} } })).rejects.toThrow(/no MCP server "other"; it has docs/);
  const { definition, close } = await loadTealAgent(file, {
    model: () => scriptedModel([{ toolCalls: [{ name: "docs__work" }] }, "Done."]),
    mcp: { docs: { headers: () => ({ Authorization: "Bearer t" }) } },
  });
  onTestFinished(close);
  const runtime = await createRuntime({ agents: [definition], stores: memoryStores() });
  onTestFinished(() => runtime.shutdown());
  const agent = await runtime.agent("Helper", { agentId: "helper" });
  await agent.start();
  await agent.executeTurn("go").result;
  expect(seen).toEqual(["Bearer t"]);
});

test("a server that cannot be reached is an error", async () => {
  await expect(loadTealAgent(yamlOf([{ name: "gone", url: "http://127.0.0.1:1/mcp" }]))).rejects.toThrow(
    /mcp\("gone"\)/,
  );
});

test("wrong values of mcp are refused", async () => {
  const file = yamlOf([]);
  expect(await isTaken("mcp", async () => await loadTealAgent(file, { mcp: { a: 5 } as never }))).toBe(false);
  for (const value of classicValues())
    await isTaken("mcp", async () => await loadTealAgent(file, { mcp: value as never }));
});
