import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { repositoryRoot } from "../../scripts/run-command.ts";
import { createRuntime, defineAgent, defineTool, memoryStores, subagent } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { browserProgram, openBrowser, screenshot, type WatchedPage } from "../support/browser.ts";

const browser = openBrowser();
const readers = 2_000;
/** Beside other work a machine takes many times what it takes alone. */
const slack = 10;

interface Row {
  readonly cursor: number;
  readonly agentId: string;
  readonly entries: readonly { readonly at: number }[];
}

/** A run of a lead with one reader that calls 16 tools in three steps. */
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
      messages.filter(({ role }) => role === "tool").length < 16
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

function nameOf(index: number): string {
  return `large~${index.toString(16).padStart(16, "0")}`;
}

/** The same run with its reader 2,000 times, as an exported file has it. */
async function largeRun(): Promise<{ readonly data: object; readonly entries: number; readonly agents: number }> {
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
  const data = {
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
  return { data, entries: all.reduce((sum, row) => sum + row.entries.length, 0), agents: records.length };
}

function spawnedOften(row: Row, one: string, copies: readonly number[], copy: <V>(value: V, index: number) => V): Row {
  const entries = row.entries.flatMap((entry) =>
    JSON.stringify(entry).includes(one) ? copies.map((index) => copy(entry, index)) : [entry],
  );
  return { ...row, entries };
}

async function served(data: object): Promise<string> {
  const packed = gzipSync(JSON.stringify(data)).toString("base64");
  const html = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>troupe</title>
<link rel="stylesheet" href="/app.css"><script type="module" src="/app.js"></script></head>
<body><div id="app"></div><script type="application/octet-stream" id="troupe-data">${packed}</script></body></html>`;
  const types: Readonly<Record<string, string>> = { "/app.js": "text/javascript", "/app.css": "text/css" };
  const server = createServer(({ url = "/" }, response) => {
    const type = types[url];
    response.setHeader("content-type", type ?? "text/html");
    response.end(type ? readFileSync(join(repositoryRoot, "src", "inspector", "assets", url)) : html);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

/** Does something again and again and says how long it took until the next frame was shown, the slow end of it. */
async function slowest(page: WatchedPage, act: string, times = 40): Promise<number> {
  const taken = await page.evaluate<number[]>(`(async () => {
    const frame = () => new Promise((shown) => requestAnimationFrame(() => {
      const channel = new MessageChannel();
      channel.port1.onmessage = () => shown();
      channel.port2.postMessage(0);
    }));
    const act = ${act};
    const taken = [];
    for (let turn = 0; turn < ${times}; turn += 1) {
      const before = performance.now();
      act(turn);
      await frame();
      taken.push(performance.now() - before);
    }
    return taken;
  })()`);
  return taken.toSorted((one, other) => one - other)[Math.floor(times * 0.95)] ?? 0;
}

const scrub = `(turn) => document.querySelector(".track").dispatchEvent(
  new KeyboardEvent("keydown", { key: turn % 2 === 0 ? "Home" : "PageDown", bubbles: true }))`;
const scroll = `(turn) => { document.querySelector(".view .virtual").scrollTop += 700 + turn; }`;
const filter = `(turn) => {
  const field = document.querySelector(".view input[type=search]");
  field.value = "look reader settled ~1f".slice(0, turn % 20);
  field.dispatchEvent(new Event("input", { bubbles: true }));
}`;

describe.skipIf(!browserProgram)("a run of 2,001 agents and 120,000 events", () => {
  test("is ready soon, stays small and moves smoothly", async () => {
    const { data, entries, agents } = await largeRun();
    expect(agents).toBe(2_001);
    expect(entries).toBeGreaterThan(120_000);
    const url = await served(data);
    const page = await browser.newPage({ viewport: { width: 1_400, height: 860 } });
    const before = performance.now();
    await page.goto(`${url}#/run/large?view=events`);
    await page.getByText(`/ ${entries.toLocaleString("en")}`).waitFor();
    const figures = {
      ready: performance.now() - before,
      scrub: await slowest(page, scrub),
      scroll: await slowest(page, scroll),
      filter: await slowest(page, filter, 20),
    };
    const aims = { ready: 2_000, scrub: 50, scroll: 32, filter: 50 };
    for (const [name, aim] of Object.entries(aims)) {
      expect(figures[name as keyof typeof figures], name).toBeLessThan(aim * slack);
    }
    expect(await page.evaluate(`document.querySelectorAll("*").length`)).toBeLessThan(3_000);
    const client = await page.context().newCDPSession(page);
    await client.send("HeapProfiler.collectGarbage");
    const { usedSize } = await client.send("Runtime.getHeapUsage");
    expect(usedSize / 1_000_000).toBeLessThan(120);
    await screenshot(page, "page-large-events");
  });
});
