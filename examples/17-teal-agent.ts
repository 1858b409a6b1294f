// An agent that a YAML file describes (teal/agent.yaml), with plugins and a catalog, over the HTTP interface of Teal Agents.
import { createRuntime } from "troupe";
import { loadTealAgent, serveRuntime, tealSurface, tokenAuth } from "troupe/server";

const math = await loadTealAgent(new URL("teal/agent.yaml", import.meta.url));
const runtime = await createRuntime({ agents: [math.definition] });
const token = "a-token-of-ann-0001";
const server = serveRuntime(runtime, {
  authenticate: tokenAuth({ tokens: { [token]: { userId: "ann", scopes: [] } } }),
  surfaces: [tealSurface({ agents: [math] })],
});
const { url } = await server.listen({ port: 0 });

interface Answer {
  readonly status: string;
  readonly task_id: string;
  readonly output: string;
  readonly content: {
    readonly output: string;
    readonly approval_url: string;
    readonly tool_calls: { function_name: string }[];
  };
}

/** A client in any language does the same. */
async function post(path: string, body?: object): Promise<Answer> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) ?? null });
  return (await response.json()) as Answer;
}

const invoke = `/${math.name}/${math.version}`;
const first = await post(invoke, { items: [{ content_type: "text", content: "Add 5 + 3" }] });
console.log(first.status, "-", first.content.output.split("\n")[0]);

// A follow-on request names the task. This one needs an approval.
const { task_id } = first;
const paused = await post(invoke, { task_id, items: [{ content: "Delete all results" }] });
console.log(paused.status, "-", paused.content.tool_calls[0]?.function_name);

// The owner of the task approves by posting to this address.
const { output } = await post(paused.content.approval_url);
console.log("Approved -", output.split("\n")[0]);

await server.close();
await runtime.shutdown();
