import { setImmediate } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { createRedactor, shortHash, stableStringify } from "../../src/base/index.ts";
import {
  clientTool,
  createRuntime,
  defineAgent,
  InvalidInputError,
  type Runtime,
  type Stores,
  toolResult,
} from "../../src/index.ts";
import { Feed } from "../../src/inspector/feed/feed.ts";
import { importRun } from "../../src/inspector/feed/run-file.ts";
import { feedEntrySchema, feedMessageSchema, type FeedRow } from "../../src/inspector/feed/wire.ts";
import * as answers from "../../src/inspector/feed/answers.ts";
import { runtimeActor } from "../../src/inspector/feed/act.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { busyTeam, isCaughtUp, overheard, storesNames, sharedStoresOf, readerOf } from "./feed-fixtures.ts";

const tenant = "default";
const ends: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

async function runtimeOn(stores: Stores, steps: number): Promise<Runtime> {
  const runtime = await createRuntime({ agents: [busyTeam(steps)], stores });
  ends.push(() => runtime.shutdown());
  return runtime;
}

async function finished(runtime: Runtime, agentId = "desk"): Promise<void> {
  const agent = await runtime.agent("lead", { agentId });
  await agent.start();
  expect((await agent.executeTurn("go").result).text).toBe("done");
}

function feedOver(stores: Stores, runtime?: Runtime): Feed {
  const feed = new Feed();
  feed.add({ stores, tenant, runtime, actor: runtime && runtimeActor(runtime, "tester") });
  ends.push(() => feed.close());
  return feed;
}

function endsTurn({ entries }: FeedRow): boolean {
  return entries.some((entry) => entry.type === "turn.ended" && entry.turnId === "desk#1");
}

function cursorsOf(rows: readonly FeedRow[]): number[] {
  return rows.map(({ cursor }) => cursor);
}

describe.each(storesNames)("the feed over %s", (name) => {
  const newPlace = sharedStoresOf(name);

  it("returns all rows in order, each agent before its first row, batch by batch under credit", async () => {
    const place = newPlace();
    const stores = place.open();
    const runtime = await runtimeOn(stores, 180);
    await finished(runtime);
    const feed = feedOver(stores);
    const reader = await readerOf(feed, "desk", { after: 0, credit: 1 });
    await reader.until(({ type }) => type === "rows");
    await feed.runs({});
    expect(reader.batches()).toBe(1);
    expect(reader.messages.some(isCaughtUp)).toBe(false);
    reader.watch.grant(100);
    await reader.until(isCaughtUp);
    expect(reader.batches()).toBe(2);
    const stored = await stores.readTree(tenant, "desk", 0, 10_000);
    expect(cursorsOf(reader.rows)).toEqual(stored.map(({ cursor }) => cursor));
    const known = new Set<string>();
    for (const message of reader.messages) {
      expect(feedMessageSchema.safeParse(message).error).toBeUndefined();
      if (message.type === "agents") for (const { agentId } of message.agents) known.add(agentId);
      const unknown = message.type === "rows" ? message.rows.filter(({ agentId }) => !known.has(agentId)) : [];
      expect(unknown).toEqual([]);
    }
    expect(known.size).toBe(2);
  });

  it("a reader that is cut off repeatedly receives every row exactly once", async () => {
    const place = newPlace();
    const stores = place.open();
    const runtime = await runtimeOn(stores, 60);
    const feed = feedOver(stores, runtime);
    const agent = await runtime.agent("lead", { agentId: "desk" });
    const rows: FeedRow[] = [];
    const turn = agent.start().then(() => agent.executeTurn("go").result);
    for (let cut = 0; ; cut += 1) {
      const reader = await readerOf(feed, "desk", { after: rows.at(-1)?.cursor ?? 0, credit: 1 + (cut % 3) });
      await reader.until(({ type }) => type === "rows");
      reader.watch.end();
      rows.push(...reader.rows);
      // Memory answers within the same task, so the turn cannot go on in between.
      await setImmediate();
      if (rows.some(({ entries }) => entries.some((entry) => entry.type === "turn.ended" && entry.turnId === "desk#1")))
        break;
    }
    await turn;
    const last = await readerOf(feed, "desk", { after: rows.at(-1)?.cursor ?? 0, credit: 100 });
    await last.until(isCaughtUp);
    rows.push(...last.rows);
    const stored = await stores.readTree(tenant, "desk", 0, 10_000);
    expect(cursorsOf(rows)).toEqual(stored.map(({ cursor }) => cursor));
  });

  it("a reader in another process receives the rows, and the text", async () => {
    const place = newPlace();
    const writing = place.open();
    const runtime = await runtimeOn(writing, 2);
    const agent = await runtime.agent("lead", { agentId: "desk" });
    await agent.start();
    const reading = place.open();
    if (reading !== writing) ends.push(() => reading.close());
    const feed = feedOver(reading, name === "memory" ? runtime : undefined);
    const reader = await readerOf(feed, "desk", { after: 0, credit: 1_000 });
    await reader.until(isCaughtUp);
    await agent.executeTurn("go").result;
    await reader.until((message) => message.type === "rows" && message.rows.some(endsTurn));
    expect(reader.rows.some(endsTurn)).toBe(true);
    const texts = reader.messages.flatMap((message) => (message.type === "live" ? [message.event] : []));
    // SQLite transports no text between processes.
    expect(name === "sqlite" ? texts : []).toEqual([]);
  });

  it("rows that several readers follow from one cursor are read once", async () => {
    const stores = newPlace().open();
    const runtime = await runtimeOn(stores, 120);
    await finished(runtime);
    const reads: unknown[] = [];
    const feed = feedOver(
      overheard(
        () => stores,
        (call, asked) => void (call === "readTree" && reads.push(asked[2])),
      ),
    );
    const readers = await Promise.all(
      Array.from({ length: 8 }, () => readerOf(feed, "desk", { after: 0, credit: 1_000 })),
    );
    await Promise.all(readers.map((reader) => reader.until(isCaughtUp)));
    expect(reads).toHaveLength(new Set(reads).size);
    await finished(runtime, "other");
    await (await runtime.find("desk")).executeTurn("more").result;
    const head = (await stores.readTree(tenant, "desk", 0, 10_000)).at(-1)?.cursor ?? 0;
    const isWhole = ({ rows }: { rows: readonly FeedRow[] }): boolean => rows.at(-1)?.cursor === head;
    await Promise.all(readers.map((reader) => reader.until(() => isWhole(reader))));
    for (const { rows } of readers) expect(cursorsOf(rows)).toEqual(cursorsOf(readers[0]?.rows ?? []));
  });

  it("answers fit their schemas", async () => {
    const stores = newPlace().open();
    const runtime = await runtimeOn(stores, 2);
    await finished(runtime);
    const feed = feedOver(stores, runtime);
    const child = (await runtime.list()).find(({ parentAgentId }) => parentAgentId === "desk")?.agentId ?? "";
    const call = "desk#1:1:0";
    const given = {
      info: answers.feedInfoSchema.parse(feed.info("act")),
      runs: answers.runPageSchema.parse(await feed.runs({})),
      head: answers.runHeadSchema.parse(await feed.head("desk")),
      machines: answers.agentMachinesSchema.parse(await feed.machines("desk", "desk", null)),
      transitions: answers.transitionPageSchema.parse(await feed.transitions("desk", "desk")),
      messages: answers.messagePageSchema.parse(await feed.messages("desk", "desk", {})),
      prompts: answers.promptRowSchema.array().parse(await feed.prompts("desk", "desk")),
      call: answers.callDetailSchema.parse(await feed.call("desk", call)),
      row: answers.rowViewSchema.parse(
        await feed.row("desk", (await stores.readTree(tenant, "desk", 0, 1))[0]?.cursor ?? 0),
      ),
      accounts: answers.storedAccountsSchema.parse(await feed.storedAccounts("desk")),
      owners: answers.ownerRowSchema.array().parse(await feed.owners("desk")),
    };
    answers.promptSchema.parse(await feed.prompt("desk", "desk", given.prompts[1]?.seq ?? 0));
    expect(given.info).toMatchObject({ source: "process", definitions: ["lead", "reader"], text: "written" });
    expect(given.runs.items).toMatchObject([
      { runId: "desk", name: "lead", stopReason: "completed", turns: 1, openRequests: 0 },
    ]);
    expect(given.runs.items[0]?.tokens).toBeGreaterThan(0);
    expect(given.head.agents.map(({ agentId }) => agentId).toSorted()).toEqual(["desk", child].toSorted());
    expect(given.machines.agent.value).toBe("ready");
    expect(given.prompts).toHaveLength(4);
    expect(given.prompts.map(({ outcome }) => outcome)).toEqual(["answered", "answered", "answered", "answered"]);
    expect(given.call).toMatchObject({ name: "look", asked: '{"at":"place 0"}', end: { outcome: "success" } });
    const checked = { at: "place 0" };
    const gate = { verdict: "allowed", arguments: checked, argumentsHash: shortHash(stableStringify(checked)) };
    expect(given.call).toMatchObject({ kind: "function", gate });
    expect(given.messages.items.map(({ message }) => message.role).slice(0, 3)).toEqual(["user", "assistant", "tool"]);
    expect(given.owners.map(({ agentId }) => agentId)).toContain("desk");
  });

  it("messages and machines at an earlier cursor are those of that time", async () => {
    const stores = newPlace().open();
    await finished(await runtimeOn(stores, 3));
    const feed = feedOver(stores);
    const { items } = await feed.transitions("desk", "desk");
    const middle = items.find(({ machine, to }) => machine === "turn" && JSON.stringify(to).includes("calling"));
    const at = middle?.cursor ?? 0;
    const machines = await feed.machines("desk", "desk", at);
    expect(machines).toMatchObject({ cursor: at, turn: { turnId: "desk#1" } });
    const { items: early } = await feed.messages("desk", "desk", { at });
    expect(early.map(({ message }) => message.role)).toEqual(["user"]);
    const page = await feed.messages("desk", "desk", { limit: 2 });
    const older = await feed.messages("desk", "desk", { before: page.next ?? "", limit: 100 });
    const all = await feed.messages("desk", "desk", { limit: 200 });
    expect([...older.items, ...page.items]).toEqual(all.items);
  });

  it("search finds texts of entries and messages, continues by page, and stops when no client waits", async () => {
    const stores = newPlace().open();
    await finished(await runtimeOn(stores, 60));
    const feed = feedOver(stores);
    const { signal } = new AbortController();
    const found: string[] = [];
    for (let after: number | null = 0; after !== null; ) {
      const page = answers.searchPageSchema.parse(await feed.search("desk", { text: "SEEN PLACE 3", after, signal }));
      found.push(...page.hits.map(({ match, after: rest }) => match + rest));
      after = page.next;
    }
    expect(found).toContain("seen place 3");
    expect(found).toContain("seen place 39");
    const gone = await feed.search("desk", { text: "seen", signal: AbortSignal.abort() });
    expect(gone).toEqual({ hits: [], next: 0 });
  });

  it("a run that is exported and read back returns the same rows and answers", async () => {
    const stores = newPlace().open();
    await finished(await runtimeOn(stores, 3));
    const feed = feedOver(stores);
    const text = JSON.stringify(await feed.export("desk"));
    const imported = await importRun(text);
    const copy = new Feed();
    copy.add({ ...imported, isFile: true });
    ends.push(() => copy.close());
    const [one, other] = [
      await readerOf(feed, "desk", { after: 0, credit: 100 }),
      await readerOf(copy, "desk", { after: 0, credit: 100 }),
    ];
    await one.until(isCaughtUp);
    await other.until(isCaughtUp);
    expect(other.rows.map(({ agentId, entries }) => ({ agentId, entries }))).toEqual(
      one.rows.map(({ agentId, entries }) => ({ agentId, entries })),
    );
    expect((await copy.messages("desk", "desk", {})).items.map(({ message }) => message)).toEqual(
      (await feed.messages("desk", "desk", {})).items.map(({ message }) => message),
    );
    expect(await copy.call("desk", "desk#1:1:0")).toMatchObject({ name: "look", end: { outcome: "success" } });
    expect(copy.info("watch")).toMatchObject({ source: "file" });
  });

  it("an artifact of bytes is whole, and neither its name nor a decision has what readers may not see", async () => {
    const stores = newPlace().open();
    const bytes = Buffer.from([0x25, 0x50, 0x44, 0x46, 0, 0xff]);
    const model = scriptedModel([{ toolCalls: [{ name: "scan" }] }, "done"]);
    const scan = clientTool({ name: "scan", description: "Scans.", parameters: z.object({}) });
    const lead = defineAgent({ name: "lead", model, tools: [scan] });
    const runtime = await createRuntime({ agents: [lead], stores });
    ends.push(() => runtime.shutdown());
    const agent = await runtime.agent("lead", { agentId: "desk" });
    await agent.start();
    const turn = agent.executeTurn("go");
    await turn.settled;
    const [request] = await agent.requests();
    const file = { type: "file", data: bytes, mediaType: "application/pdf", name: "sk-secret.pdf" } as const;
    await agent.decide(request?.requestId ?? "", { verdict: "answered", result: toolResult({ content: [file] }) });
    await turn.result;
    const artifactId = (await agent.getArtifacts())[0]?.artifactId ?? "";
    const data = bytes.toString("base64");
    const feed = feedOver(stores);
    expect(await feed.artifact("desk", "desk", artifactId)).toMatchObject({
      contentType: "application/pdf",
      encoding: "base64",
      content: data,
      isCut: false,
    });
    const { requests, end } = await feed.call("desk", request?.callId ?? "");
    expect(requests[0]?.decision?.result?.files).toMatchObject([{ artifactId, name: "sk-secret.pdf" }]);
    expect(JSON.stringify(requests)).not.toContain(data);
    expect(end?.message?.content).toMatchObject([{ type: "text" }, { type: "file", artifactId }]);
    const redactor = createRedactor({ secrets: ["sk-secret"] });
    const careful = new Feed({ redactor });
    const names = new Feed({ namesOnly: true });
    for (const one of [careful, names]) {
      one.add({ stores, tenant });
      ends.push(() => one.close());
      expect(JSON.stringify(await one.artifact("desk", "desk", artifactId))).not.toContain("sk-secret");
    }
    expect(await names.artifact("desk", "desk", artifactId)).toMatchObject({ name: "", content: "", isCut: true });
  });

  it("an unknown run, agent, call, row or prompt is not found", async () => {
    const stores = newPlace().open();
    await finished(await runtimeOn(stores, 1));
    const feed = feedOver(stores);
    const asks = [
      feed.head("nobody"),
      feed.machines("desk", "nobody", null),
      feed.call("desk", "desk#1:9:9"),
      feed.row("desk", 9_999_999),
      feed.prompt("desk", "desk", 9_999),
      feed.artifact("desk", "desk", "none"),
      feed.watch("nobody", { after: 0, credit: 1 }, { isFull: () => false, send: () => undefined }),
    ];
    const outcomes = await Promise.allSettled(asks);
    for (const outcome of outcomes)
      expect(outcome).toMatchObject({ status: "rejected", reason: { code: "not_found" } });
  });
});

it("importRun refuses a text that is not an exported run, and names its first error", async () => {
  for (const text of ["", "{}", "[".repeat(100_000), JSON.stringify({ format: "troupe.run/1", runId: "x" })]) {
    await expect(importRun(text)).rejects.toThrow("expected a file of the format troupe.run/1");
  }
});

it("the schema of entries accepts the journal's entries, without their epoch", () => {
  const entry = { type: "warning", seq: 1, at: 1, code: "note", message: "m" };
  expect(feedEntrySchema.parse(entry)).toEqual(entry);
  expect(feedEntrySchema.safeParse({ ...entry, seq: 0 }).success).toBe(false);
});

describe("queries of the feed", () => {
  const { signal } = new AbortController();
  const feed = new Feed();

  it.each([
    [
      "runs()",
      () => feed.runs({ since: "yesterday" as never }),
      /feed\.runs\(\): since is the text "yesterday"; expected a whole number/,
    ],
    ["runs()", () => feed.runs({ limit: 0 }), /limit is 0; expected a whole number from 1 to 200/],
    ["runs()", () => feed.runs({ agents: "lead" } as never), /agents.*agent/],
    [
      "messages()",
      () => feed.messages("desk", "desk", { at: -1 }),
      /feed\.messages\(\): at is -1; expected a whole number/,
    ],
    [
      "search()",
      () => feed.search("desk", { text: 7 as never, signal }),
      /feed\.search\(\): text is 7; expected a text/,
    ],
  ])("%s rejects a wrong value", async (_method, ask, message) => {
    await expect(ask()).rejects.toThrow(message);
    await expect(ask()).rejects.toBeInstanceOf(InvalidInputError);
  });
});
