// An MCP server that needs a login: the call waits as an `auth` request with the login page, and goes on after the login.
import { createHash, randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createAgent, textOf } from "troupe";
import { mcp, mcpLogins, memoryMcpTokens } from "troupe/mcp";
import { scriptedModel } from "troupe/testing";

// An MCP server with its authorization server, which would be elsewhere.
const codes = new Map<string, { readonly user: string; readonly challenge: string }>();
const users = new Map<string, string>();
const till = createServer((request, response) => void serve(request, response));

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? "/", origin());
  const send = (status: number, body: object | undefined, headers: Record<string, string> = {}): void => {
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(body && JSON.stringify(body));
  };
  const text = await bodyOf(request);
  if (pathname === "/.well-known/oauth-authorization-server") {
    return send(200, {
      issuer: origin(),
      authorization_endpoint: `${origin()}/login`,
      token_endpoint: `${origin()}/token`,
      registration_endpoint: `${origin()}/register`,
      response_types_supported: ["code"],
      code_challenge_methods_supported: ["S256"],
    });
  }
  if (pathname === "/register") return send(201, { ...JSON.parse(text), client_id: randomUUID() });
  if (pathname === "/login") {
    const code = randomUUID();
    codes.set(code, { user: "ann", challenge: searchParams.get("code_challenge") ?? "" });
    const back = new URL(searchParams.get("redirect_uri") ?? "");
    back.searchParams.set("code", code);
    back.searchParams.set("state", searchParams.get("state") ?? "");
    return send(302, undefined, { location: back.href });
  }
  if (pathname === "/token") {
    const form = new URLSearchParams(text);
    const code = codes.get(form.get("code") ?? "");
    const digest = createHash("sha256")
      .update(form.get("code_verifier") ?? "")
      .digest("base64url");
    if (code?.challenge !== digest) return send(400, { error: "invalid_grant" });
    const token = randomUUID();
    users.set(token, code.user);
    return send(200, { access_token: token, token_type: "Bearer" });
  }
  if (pathname !== "/mcp") return send(404, {});
  const user = users.get((request.headers.authorization ?? "").replace("Bearer ", ""));
  if (user === undefined) return send(401, {}, { "www-authenticate": "Bearer" });
  if (request.method !== "POST") return send(405, {});
  const { id, method } = JSON.parse(text) as { readonly id?: number; readonly method: string };
  if (id === undefined) return send(202, undefined);
  const results: Record<string, object> = {
    initialize: {
      protocolVersion: "2025-11-25",
      capabilities: { tools: {} },
      serverInfo: { name: "till", version: "1.0.0" },
    },
    "tools/list": { tools: [{ name: "balance", description: "The balance.", inputSchema: { type: "object" } }] },
    "tools/call": { content: [{ type: "text", text: `${user} has 12` }] },
  };
  const result = results[method];
  return send(200, { jsonrpc: "2.0", id, ...(result ? { result } : { error: { code: -32_601, message: "no" } }) });
}
till.listen(0, "127.0.0.1");
await new Promise((resolve) => till.once("listening", resolve));

function origin(): string {
  const address = till.address();
  return `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request) text += String(chunk);
  return text;
}

/** The person, who opens the page in a browser and logs in. Returns the address to which the browser is sent back. */
async function visit(page: string): Promise<string> {
  const { headers } = await fetch(page, { redirect: "manual" });
  return headers.get("location") ?? "";
}

const oauth = { redirectUrl: "https://app.example.com/callback", store: memoryMcpTokens() };
const options = { name: "till", url: `${origin()}/mcp`, auth: { oauth } };

// The program itself logs in once, to read the definitions.
const logins = await mcpLogins(options);
const page = await logins.begin({ actorId: null });
await logins.finish(await visit(page), { actorId: null });
const server = await mcp(options);

const model = scriptedModel([{ toolCalls: [{ name: "till__balance", arguments: {} }] }, "You have 12."]);
const agent = await createAgent({ model, tools: server.tools });
await agent.start();
const turn = agent.executeTurn("What do I have?", { auth: { actorId: "ann" } });
const rest = await turn.settled;
if (rest.status === "waiting" && rest.reason === "request") {
  for (const { requestId, kind, prompt } of rest.requests) {
    const [words, address = ""] = prompt.split("\n");
    console.log(`${kind} - ${words}`);
    // In a program this is the route of `redirectUrl`, which knows the person by its session.
    await server.logins.finish(await visit(address), { actorId: "ann" });
    await agent.decide(requestId, { verdict: "provided", by: "ann" });
  }
}
await turn.result;
for (const { role, content } of await agent.getMessages()) {
  if (role === "tool") console.log("tool -", textOf(content));
}
console.log((await turn.result).text);
await agent.runtime.shutdown();
await server.close();
till.close();
till.closeAllConnections();
