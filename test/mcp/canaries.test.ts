// A secret that servers repeat in everything they send is searched in what the feed, a stream, an export and commands show (S13).
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRuntime, defineAgent, type Runtime, type Tool } from "troupe";
import { apiSurface, serveRuntime, tokenAuth } from "troupe/server";
import { memoryStores } from "troupe/stores/memory";
import { scriptedModel } from "troupe/testing";
import { expect, onTestFinished, test, vi } from "vitest";
import { createRedactor } from "../../src/base/index.ts";
import { Feed } from "../../src/inspector/feed/feed.ts";
import { serveFeed } from "../../src/inspector/start-inspector.ts";
import { troupe } from "../cli/support/in-process.ts";
import { isCaughtUp, readerOf } from "../inspector/feed-fixtures.ts";
import { visit } from "../inspector/visitors.ts";
import { ada, askOf, framesOf, identities } from "../server/api/served.ts";
import { canary } from "./asking-server.ts";
import { openRepeating } from "./repeating-server.ts";
import { connected, openDesk } from "./served-desk.ts";

const headers = { authorization: `Bearer ${canary}`, "x-api-key": canary };

/** Options of a server that repeats its secrets in definitions, errors, results and resources, and of one that does in a question. */
async function openTelltales() {
  const far = await openRepeating(canary);
  const inn = await openDesk("http modern", "inn");
  return {
    far: { name: "far", url: far.url, headers, resourceTools: true },
    inn: { name: "inn", ...inn.options, headers, elicitation: true },
  };
}

/** A clerk that calls the servers' tools: one that fails, and then all others. */
function clerkOf(tools: readonly Tool<never>[]) {
  const steps = [
    { toolCalls: [{ name: "far__work" }] },
    {
      toolCalls: [
        { name: "far__work" },
        { name: "far__list_resources" },
        { name: "far__read_resource", arguments: { uri: "a:b" } },
        { name: "inn__telltale" },
      ],
    },
    "done",
  ];
  const model = scriptedModel(
    ({ messages }) => steps[messages.filter(({ role }) => role === "assistant").length] ?? "done",
  );
  return defineAgent({ name: "clerk", model, tools: [...tools] });
}

/** Everything that the inspector's server answers about the run of an agent. */
async function feedOf({ stores, tenant }: Runtime, agentId: string): Promise<Readonly<Record<string, string>>> {
  // A redactor without secrets and patterns: the feed itself removes nothing.
  const feed = new Feed({ redactor: createRedactor({ environment: {}, shapes: false }) });
  feed.add({ stores, tenant });
  const server = await serveFeed(feed);
  const reader = await readerOf(feed, agentId, { after: 0, credit: 1_000 });
  await reader.until(isCaughtUp);
  reader.watch.end();
  const calls = ["1:0", "2:0", "2:1", "2:2", "2:3"].map((place) => encodeURIComponent(`${agentId}#1:${place}`));
  const prompts = await feed.prompts(agentId, agentId);
  const run = `/api/runs/${agentId}`;
  const paths = [
    run,
    ...["requests", "search?text=key", "search?text=secret", "steps", "owners", "export"].map(
      (view) => `${run}/${view}`,
    ),
    ...["machines", "transitions", "messages", "prompts"].map((view) => `${run}/agents/${agentId}/${view}`),
    ...prompts.map(({ seq }) => `${run}/agents/${agentId}/prompts/${seq}`),
    ...calls.map((callId) => `${run}/calls/${callId}`),
    ...reader.rows.map(({ cursor }) => `${run}/rows/${cursor}`),
  ];
  const seen: Record<string, string> = {
    messages: JSON.stringify(reader.messages),
    page: JSON.stringify(await feed.page(agentId)),
  };
  for (const path of paths) {
    const { status, body } = await visit(`${server.origin}${path}`, { authorization: `Bearer ${server.tokens.watch}` });
    expect([path, status]).toEqual([path, 200]);
    seen[path] = body;
  }
  await server.close();
  return seen;
}

/** Fails with the names of the places whose text has the secret. */
function expectNoCanary(seen: Readonly<Record<string, string>>): void {
  const leaks = Object.entries(seen).filter(([, text]) => text.includes(canary));
  expect(leaks.map(([place]) => place)).toEqual([]);
}

test("a secret that servers repeat is in no stream of a turn, no export and no answer of the inspector", async () => {
  const telltales = await openTelltales();
  const far = await connected(telltales.far);
  const inn = await connected(telltales.inn);
  const stores = memoryStores();
  const runtime = await createRuntime({ agents: [clerkOf([...far.tools, ...inn.tools])], stores });
  const server = serveRuntime(runtime, { authenticate: tokenAuth({ tokens: identities }), surfaces: [apiSurface()] });
  onTestFinished(async () => {
    await server.close();
    await runtime.shutdown();
  });
  const ask = askOf(server);
  const created = await ask("POST /api/agents", { body: { definition: "clerk" } });
  const { agentId } = (await created.json()) as { readonly agentId: string };
  const stream = await ask(`POST /api/agents/${agentId}/turns`, {
    body: { input: "Work." },
    headers: { accept: "text/event-stream" },
  });
  const bytes = stream.clone().text();
  for await (const { data } of framesOf(stream)) {
    if (data.type !== "request.opened") continue;
    const [request] = await runtime.requests();
    await runtime.decide(request?.requestId ?? "", { verdict: "answered", result: "yes", by: ada });
  }
  const exported = await stores.exportTree(runtime.tenant, agentId);
  const seen: Readonly<Record<string, string>> = {
    stream: await bytes,
    exported: JSON.stringify(exported),
    ...(await feedOf(runtime, agentId)),
  };
  expectNoCanary(seen);
  for (const place of ["stream", "exported", "messages", `/api/runs/${agentId}/requests`]) {
    expect({ place, text: seen[place] }).toEqual({
      place,
      text: expect.stringContaining("[secret:") as unknown,
    });
  }
});

test("a secret that servers repeat is in no output of `troupe mcp`, and not in the lock file", async () => {
  const { far, inn } = await openTelltales();
  const folder = mkdtempSync(join(tmpdir(), "troupe-canaries-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const config = join(folder, "mcp.json");
  const key = { "x-api-key": "${KEY}" };
  const mcpServers = {
    far: { url: far.url, headers: { authorization: `Bearer ${canary}`, ...key } },
    inn: { url: inn.url, headers: key },
    gone: { url: "http://127.0.0.1:1/mcp", headers },
  };
  writeFileSync(config, JSON.stringify({ mcpServers }));
  const warned = vi.spyOn(process, "emitWarning").mockReturnValue();
  onTestFinished(() => warned.mockRestore());
  const seen: Record<string, string> = {};
  for (const words of [
    ["list"],
    ["list", "--json"],
    ["check"],
    ["pin", "far", "inn"],
    ["check", "--json"],
    ["call", "far", "work"],
    ["call", "far", "work"],
    ["call", "far", "work", "--json"],
    ["call", "far", `work-${canary.slice(0, 6)}`],
    ["call", "inn", "telltale"],
    ["call", "gone", "work"],
  ]) {
    const { out, notes } = await troupe(["mcp", ...words, "--config", config], { KEY: canary });
    seen[`${Object.keys(seen).length + 1}: ${words.join(" ")}`] = [...out, ...notes].join("\n");
  }
  seen["warnings"] = JSON.stringify(warned.mock.calls);
  seen["lock file"] = readFileSync(join(folder, "mcp.lock.json"), "utf8");
  expectNoCanary(seen);
  for (const place of ["6: call far work", "7: call far work", "lock file", "warnings"]) {
    expect({ place, text: seen[place] }).toEqual({ place, text: expect.stringContaining("[secret:") as unknown });
  }
  expect(seen["10: call inn telltale"]).toContain("The key is [secret:");
});
