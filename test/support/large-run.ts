import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { z } from "zod";
import { repositoryRoot } from "../../scripts/run-command.ts";
import { createRuntime, defineAgent, defineTool, memoryStores, subagent } from "../../src/index.ts";
import { packedLines } from "../../src/inspector/feed/packed-page.ts";
import type { PageData } from "../../src/inspector/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";

const readers = 2_000;

interface Row {
  readonly cursor: number;
  readonly agentId: string;
  readonly entries: readonly { readonly at: number }[];
}

/** A run of a lead with one reader that calls 24 tools in four steps. */
async function recorded() {
  const stores = memoryStores();
  const look = defineTool({
    name: "look",
    description: "Looks.",
    parameters: z.object({ at: z.number() }),
    effect: "none",
    execute: () => "seen",
  });
  const reader = defineAgent({
    name: "reader",
    tools: [look],
    model: scriptedModel(({ messages }) =>
      messages.filter(({ role }) => role === "tool").length < 24
        ? { toolCalls: Array.from({ length: 8 }, (_, at) => ({ name: "look", arguments: { at } })) }
        : "read",
    ),
  });
  const lead = defineAgent({
    name: "lead",
    tools: [subagent(reader, { budget: { maxSteps: 5 } })],
    model: scriptedModel(({ messages }) =>
      messages.at(-1)?.role === "tool" ? "done" : { toolCalls: [{ name: "reader", arguments: { input: "it" } }] },
    ),
  });
  const runtime = await createRuntime({ agents: [lead], stores });
  const agent = await runtime.agent("lead", { agentId: "large" });
  await agent.start();
  await agent.executeTurn("Read all the files.").result;
  const agents = await stores.listAgents({ tenant: "default", rootAgentId: "large" });
  const rows = await stores.readTree("default", "large", 0, 10_000);
  await runtime.shutdown();
  return { agents, rows: rows as unknown as readonly Row[] };
}

/** The id of a reader; pages show its first six digits. */
function nameOf(index: number): string {
  return `large~${index.toString(16).padStart(6, "0")}${"0".repeat(10)}`;
}

export interface LargeRun {
  /** The run as in an exported page, without contents. */
  readonly data: PageData;
  readonly entries: number;
  readonly agents: number;
}

/** The same run with its reader 2,000 times. */
export async function largeRun(): Promise<LargeRun> {
  const { agents, rows } = await recorded();
  const one = agents.find(({ parentAgentId }) => parentAgentId !== null)?.agentId ?? "";
  const copy = <Value>(value: Value, index: number): Value =>
    JSON.parse(JSON.stringify(value).replaceAll(one, nameOf(index))) as Value;
  const copies = Array.from({ length: readers }, (_, index) => index);
  let cursor = 0;
  const all = rows.flatMap((row) => {
    const made = row.agentId === one ? copies.map((index) => copy(row, index)) : [spawnedOften(row, one, copies, copy)];
    return made.map((each): Row => ({ ...each, cursor: (cursor += 1) }));
  });
  const records = agents.flatMap((record) =>
    record.agentId === one ? copies.map((index) => copy(record, index)) : [record],
  );
  const [root] = agents;
  const data: object = {
    format: "troupe.page/1",
    exportedAt: root?.lastActivity ?? 0,
    namesOnly: true,
    run: { runId: "large", name: "lead", status: "ready", turns: 1, openRequests: 0, createdAt: root?.createdAt ?? 0 },
    agents: records.map((record) => ({
      ...record,
      name: record.definition.name,
      definition: record.definition.hash,
      checkpoint: undefined,
    })),
    rows: all,
    accounts: [],
    requests: [],
  };
  return {
    data: data as PageData,
    entries: all.reduce((sum, row) => sum + row.entries.length, 0),
    agents: records.length,
  };
}

function spawnedOften(row: Row, one: string, copies: readonly number[], copy: <V>(value: V, index: number) => V): Row {
  const entries = row.entries.flatMap((entry) =>
    JSON.stringify(entry).includes(one) ? copies.map((index) => copy(entry, index)) : [entry],
  );
  return { ...row, entries };
}

/** A page with a run in it, which loads the inspector's script and style from `/`. */
export function pageWith(data: PageData): string {
  const packed = gzipSync(packedLines(data).join("\n")).toString("base64");
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>troupe</title>
<link rel="stylesheet" href="/app.css"><script type="module" src="/app.js"></script></head>
<body><div id="app"></div><script type="application/octet-stream" id="troupe-data">${packed}</script></body></html>`;
}

/** A server of such pages by their paths, and of the assets. */
export async function servePages(
  pages: Readonly<Record<string, string>>,
): Promise<{ readonly origin: string; close(): void }> {
  const types: Readonly<Record<string, string>> = { "/app.js": "text/javascript", "/app.css": "text/css" };
  const server = createServer(({ url = "/" }, response) => {
    const type = types[url];
    response.setHeader("content-type", type ?? "text/html");
    response.end(type ? readFileSync(join(repositoryRoot, "src", "inspector", "assets", url)) : pages[url]);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
