import { type AgentRequest, createAgent, type Json, type JsonObject, type Runtime, type Turn } from "troupe";
import { mcp, McpAuthorizationError, mcpLogins, type McpOptions, type McpTools, memoryMcpTokens } from "troupe/mcp";
import { scriptedModel } from "troupe/testing";

/** A scenario of the conformance suite, as its client gets it. */
export interface ClientScenario {
  readonly name: string;
  /** Address of the scenario's server. */
  readonly server: string;
  readonly context: {
    readonly toolCalls?: readonly { readonly name: string; readonly arguments: JsonObject }[];
    /** A client that is registered at the scenario's authorization server. */
    readonly client_id?: string;
    readonly client_secret?: string;
    readonly issuer?: string;
  };
}

/** The most logins of a scenario: more mean that the server refuses each of them. */
const MOST_LOGINS = 3;

/**
 * Plays a scenario: an agent calls the tools of the server; a person logs in, and answers questions with the defaults of their forms.
 * Returns the conversation.
 */
export async function playScenario({ name, server: url, context }: ClientScenario): Promise<string> {
  const options: McpOptions = {
    name: "server",
    url,
    elicitation: true,
    sampling: {},
    roots: [import.meta.dirname],
    ...(name.startsWith("auth/") ? { auth: { oauth: oauthOf(context) } } : {}),
  };
  await using server = await opened(options);
  const calls = context.toolCalls?.map((call) => ({ ...call, name: `server__${call.name}` }));
  const asked = calls ?? callsOf(server.tools);
  const model = scriptedModel(({ messages }) =>
    messages.at(-1)?.role === "user" && asked.length > 0 ? { toolCalls: asked } : "done",
  );
  const agent = await createAgent({ tools: server.tools, model });
  try {
    await agent.start();
    await played(agent.runtime, agent.executeTurn("go"), server);
    const messages = await agent.getMessages();
    return messages.map(({ role, content }) => `${role} ${JSON.stringify(content).slice(0, 1_000)}`).join("\n");
  } finally {
    await agent.runtime.shutdown();
  }
}

function oauthOf({ client_id: clientId, client_secret: clientSecret, issuer }: ClientScenario["context"]) {
  return {
    redirectUrl: "http://127.0.0.1:4180/callback",
    store: memoryMcpTokens(),
    ...(clientId === undefined || issuer === undefined
      ? // The suite finds the program by this address.
        { clientMetadataUrl: "https://conformance-test.local/client-metadata.json" }
      : { client: { clientId, issuer, ...(clientSecret === undefined ? {} : { clientSecret }) } }),
  };
}

/** The tools, after as many logins as listing needs. */
async function opened(options: McpOptions, logins = 0): Promise<McpTools> {
  try {
    return await mcp(options);
  } catch (error) {
    if (!(error instanceof McpAuthorizationError) || logins === MOST_LOGINS) throw error;
    await (await mcpLogins(options)).finish(await redirectOf(error.url), { actorId: null });
    return await opened(options, logins + 1);
  }
}

/** Follows a login page, which sends the browser back at once. */
async function redirectOf(page: string): Promise<string> {
  const response = await fetch(page, { redirect: "manual" });
  const location = response.headers.get("location");
  if (location === null) throw new Error(`the login page answered ${response.status}`);
  return location;
}

async function played(runtime: Runtime, turn: Turn, server: McpTools): Promise<void> {
  for (let logins = 0; ; ) {
    const rest = await turn.settled;
    if (rest.status !== "waiting" || rest.reason === "paused") return;
    for (const request of rest.requests) {
      if (request.kind === "auth") logins += 1;
      await decided(runtime, request, { server, mayLogIn: logins <= MOST_LOGINS });
    }
  }
}

interface Person {
  readonly server: McpTools;
  readonly mayLogIn: boolean;
}

async function decided(runtime: Runtime, request: AgentRequest, { server, mayLogIn }: Person): Promise<void> {
  const { requestId, kind } = request;
  const { url } = request.arguments as { readonly url?: string };
  if (kind === "question") await runtime.decide(requestId, { verdict: "answered", result: {} });
  else if (kind === "approval") await runtime.decide(requestId, { verdict: "approved" });
  else if (!mayLogIn) await runtime.decide(requestId, { verdict: "rejected" });
  else {
    await server.logins.finish(await redirectOf(url ?? ""), { actorId: null });
    await runtime.decide(requestId, { verdict: "provided" });
  }
}

/** A call of each tool. */
function callsOf(tools: McpTools["tools"]): { readonly name: string; readonly arguments: JsonObject }[] {
  const focal = tools.find(({ name }) => name === "server__json_schema_2020_12_tool");
  return tools.map(({ name, jsonSchema }) => ({
    name,
    arguments:
      name === "server__json_schema_echo" && focal !== undefined
        ? { schema: focal.jsonSchema }
        : argumentsOf(jsonSchema),
  }));
}

function argumentsOf({ properties = {} }: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(properties as Readonly<Record<string, JsonObject>>).map(([name, schema]) => [name, valueOf(schema)]),
  );
}

/** A value that fits a schema of the suite's tools. */
function valueOf(schema: JsonObject): Json {
  if (schema["enum"] !== undefined) return (schema["enum"] as readonly Json[])[0] ?? null;
  if (schema["type"] === "number" || schema["type"] === "integer") return 1;
  if (schema["type"] === "boolean") return true;
  if (schema["type"] === "array") return [];
  return schema["type"] === "object" ? argumentsOf(schema) : "text";
}
