import { defineAgent, createRuntime } from "troupe";
import { describe, expect, onTestFinished, test } from "vitest";
import { modelFamilies } from "../model/contract/families.ts";
import { familyServer } from "../model/contract/model-server.ts";
import { toolTextsOf } from "../support/journal-probes.ts";
import { oddSchemas } from "./odd-schemas.ts";
import { openScripted } from "./scripted-server.ts";
import { callerOf, connected, serve } from "./served-desk.ts";

const listed = oddSchemas.map(({ schema: inputSchema }, index) => ({ name: `odd${index}`, inputSchema }));

/** The tools of a server with all odd schemas. */
async function oddTools() {
  const server = await openScripted({ tools: listed });
  return await connected({ name: "far", url: server.url });
}

test("every schema defines a tool, and warnings name what is not checked", async () => {
  const { tools, warnings } = await oddTools();
  expect(tools.map(({ name }) => name)).toEqual(listed.map(({ name }) => `far__${name}`));
  expect(tools.filter(({ jsonSchema }) => jsonSchema["type"] !== "object")).toEqual([]);
  for (const [index, { name, unchecked }] of oddSchemas.entries()) {
    const words = warnings.filter((warning) => warning.includes(`"odd${index}"`)).join("\n");
    expect(words, name).toMatch(unchecked ?? /^$/);
  }
});

/** The results of calls of all tools that have such arguments. */
async function callsOf(field: "right" | "wrong") {
  const { tools } = await oddTools();
  const asked = [...oddSchemas.entries()].flatMap(([index, { name, [field]: given }]) =>
    given === undefined ? [] : [{ index, name, given: given as Record<string, unknown> }],
  );
  const results: { readonly name: string; readonly text: string | undefined }[] = [];
  for (const { index, name, given } of asked) {
    const { agent, runtime } = await callerOf(tools, [{ name: `far__odd${index}`, arguments: given }]);
    await agent.executeTurn("go").result;
    results.push({ name, text: (await toolTextsOf(agent))[0] });
    await runtime.shutdown();
  }
  return results;
}

describe("arguments", () => {
  test("that fit are sent", async () => {
    const results = await callsOf("right");
    expect(results.length).toBeGreaterThan(20);
    expect(results.filter(({ text }) => text !== "worked")).toEqual([]);
  });

  test("that do not fit are refused", async () => {
    const results = await callsOf("wrong");
    expect(results.length).toBeGreaterThan(20);
    expect(results.filter(({ text = "" }) => !/was not run/.test(text))).toEqual([]);
  });
});

test("a check that would take 2 to the power of 40 steps ends", async () => {
  const { tools } = await oddTools();
  const index = oddSchemas.findIndex(({ name }) => name.startsWith("a reference that doubles"));
  const { agent } = await callerOf(tools, [{ name: `far__odd${index}`, arguments: { a: 1 } }]);
  expect((await agent.executeTurn("go").result).status).toBe("completed");
  expect((await toolTextsOf(agent))[0]).toMatch(/^worked$|was not run/);
});

test.each(modelFamilies)("$name gets every tool", async (family) => {
  const { tools } = await oddTools();
  const server = await familyServer(family, [{ text: "done" }]);
  const agent = defineAgent({ name: "reader", model: server.model(), tools: [...tools] });
  const runtime = await createRuntime({ agents: [agent] });
  onTestFinished(() => runtime.shutdown());
  const reader = await runtime.agent("reader");
  await reader.start();
  expect(await reader.executeTurn("go").result).toMatchObject({ status: "completed", text: "done" });
  const sent = JSON.stringify(server.bodies[0]);
  expect(tools.filter(({ name }) => !sent.includes(`"${name}"`))).toEqual([]);
});

test("a schema that is nested 20,000 levels deep, which JSON cannot be made of", async () => {
  const levels = 20_000;
  const schema = `${'{"type":"object","properties":{"a":'.repeat(levels)}{}${"}}".repeat(levels)}`;
  const far = await serve(async (request) => {
    if (request.method !== "POST") return new Response(null, { status: 405 });
    const { id, method } = (await request.json()) as { readonly id?: number | string; readonly method: string };
    if (id === undefined) return new Response(null, { status: 202 });
    const serverInfo =
      '"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"far","version":"1"}';
    const result = {
      initialize: `{${serverInfo}}`,
      "tools/list": `{"tools":[{"name":"deep","inputSchema":${schema}}]}`,
      "tools/call": '{"content":[{"type":"text","text":"worked"}]}',
    }[method];
    const answer = result === undefined ? '"error":{"code":-32601,"message":"no"}' : `"result":${result}`;
    return new Response(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},${answer}}`, {
      headers: { "content-type": "application/json" },
    });
  });
  const { tools, warnings } = await connected({ name: "far", url: far.url });
  expect(warnings[0]).toMatch(/"deep" is not fully checked: .*nested too deeply/);
  const { agent } = await callerOf(tools, [{ name: "far__deep", arguments: { a: 1 } }]);
  await agent.executeTurn("go").result;
  expect(await toolTextsOf(agent)).toEqual(["worked"]);
});
