// The client that the conformance suite runs: an agent calls the tools of the server whose address is the last argument.
import { createAgent, type Json, type JsonObject } from "troupe";
import { mcp } from "troupe/mcp";
import { scriptedModel } from "troupe/testing";

interface Scenario {
  readonly toolCalls?: readonly { readonly name: string; readonly arguments: JsonObject }[];
}

/** A value that fits a schema of the suite's tools. */
function valueOf(schema: JsonObject): Json {
  if (schema["enum"] !== undefined) return (schema["enum"] as readonly Json[])[0] ?? null;
  if (schema["type"] === "number" || schema["type"] === "integer") return 1;
  if (schema["type"] === "boolean") return true;
  if (schema["type"] === "array") return [];
  return schema["type"] === "object" ? argumentsOf(schema) : "text";
}

function argumentsOf({ properties = {} }: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(properties as Readonly<Record<string, JsonObject>>).map(([name, schema]) => [name, valueOf(schema)]),
  );
}

const { toolCalls } = JSON.parse(process.env["MCP_CONFORMANCE_CONTEXT"] ?? "{}") as Scenario;
const server = await mcp({ name: "server", url: process.argv.at(-1) });
const calls = toolCalls?.map(({ name, arguments: args }) => ({ name: `server__${name}`, arguments: args }));
const { tools } = server;
const focal = tools.find(({ name }) => name === "server__json_schema_2020_12_tool");
const sampled = tools.map(({ name, jsonSchema }) => ({
  name,
  arguments:
    name === "server__json_schema_echo" && focal !== undefined ? { schema: focal.jsonSchema } : argumentsOf(jsonSchema),
}));
const asked = calls ?? sampled;
const model = scriptedModel(({ messages }) =>
  messages.at(-1)?.role === "user" && asked.length > 0 ? { toolCalls: asked } : "done",
);
const agent = await createAgent({ tools, model });
await agent.start();
await agent.executeTurn("go").result;
for (const { role, content } of await agent.getMessages()) console.error(role, JSON.stringify(content).slice(0, 1_000));
await agent.runtime.shutdown();
await server.close();
