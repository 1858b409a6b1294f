// The client that the conformance suite runs: an agent calls the tools of the server whose address is the last argument, logs in and
// answers questions.
import { createAgent, type Json, type JsonObject } from "troupe";
import {
  mcp,
  type McpAuth,
  McpAuthorizationError,
  type McpLogins,
  mcpLogins,
  type McpOptions,
  type McpTools,
  memoryMcpTokens,
} from "troupe/mcp";
import { scriptedModel } from "troupe/testing";

interface Scenario {
  readonly toolCalls?: readonly { readonly name: string; readonly arguments: JsonObject }[];
  /** A client that is registered. */
  readonly client_id?: string;
  readonly client_secret?: string;
  readonly issuer?: string;
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

const scenario = process.env["MCP_CONFORMANCE_SCENARIO"] ?? "";
const {
  toolCalls,
  client_id: clientId,
  client_secret: clientSecret,
  issuer = "",
} = JSON.parse(process.env["MCP_CONFORMANCE_CONTEXT"] ?? "{}") as Scenario;
const url = process.argv.at(-1) ?? "";

function authOf(): McpAuth {
  const common = { redirectUrl: "http://localhost:3000/callback", store: memoryMcpTokens() };
  if (clientId !== undefined) return { oauth: { ...common, client: { clientId, clientSecret, issuer } } };
  return { oauth: { ...common, clientMetadataUrl: "https://conformance-test.local/client-metadata.json" } };
}

const options: McpOptions = {
  name: "server",
  url,
  ...(scenario.startsWith("auth/") ? { auth: authOf() } : {}),
  ...(scenario.startsWith("elicitation") ? { elicitation: true } : {}),
};

/** Visits the login page, which sends the suite's person back at once. */
async function logIn(page: string, logins: McpLogins): Promise<void> {
  const { headers } = await fetch(page, { redirect: "manual" });
  await logins.finish(new URL(headers.get("location") ?? ""), { actorId: null });
}

async function openServer(): Promise<McpTools> {
  try {
    return await mcp(options);
  } catch (error) {
    if (!(error instanceof McpAuthorizationError)) throw error;
    await logIn(error.url, await mcpLogins(options));
    return await openServer();
  }
}

/** Answers a form with its defaults. */
function answerOf(about: JsonObject): JsonObject {
  const { properties = {} } = about["schema"] as { readonly properties?: Readonly<Record<string, JsonObject>> };
  const fields = Object.entries(properties).map(([name, schema]) => [name, schema["default"] ?? valueOf(schema)]);
  return Object.fromEntries(fields) as JsonObject;
}

const server = await openServer();
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
const turn = agent.executeTurn("go");
for (let rest = await turn.settled; rest.status === "waiting"; rest = await turn.settled) {
  if (rest.reason !== "request") throw new Error(`the turn rests: ${rest.reason}`);
  for (const { requestId, kind, arguments: about } of rest.requests) {
    if (kind === "auth") {
      await logIn((about as { readonly url: string }).url, server.logins);
      await agent.decide(requestId, { verdict: "provided" });
    } else await agent.decide(requestId, { verdict: "answered", result: answerOf(about as JsonObject) });
  }
}
for (const { role, content } of await agent.getMessages()) console.error(role, JSON.stringify(content).slice(0, 1_000));
await agent.runtime.shutdown();
await server.close();
