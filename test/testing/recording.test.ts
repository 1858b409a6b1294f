import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, expect, it } from "vitest";
import { z } from "zod";
import { createRuntime, defineAgent, defineTool, memoryStores, type Stores } from "../../src/index.ts";
import { Feed, importRun } from "../../src/inspector/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { importableTree, readRecording } from "../../src/testing/recording.ts";

const secret = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789";
const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

async function played(): Promise<Stores> {
  const stores = memoryStores();
  const look = defineTool({
    name: "look",
    description: `Looks with ${secret}.`,
    parameters: z.object({ at: z.string() }),
    execute: ({ at }) => `seen ${at}`,
  });
  const model = scriptedModel([{ toolCalls: [{ name: "look", arguments: { at: secret } }] }, "done"]);
  const runtime = await createRuntime({ agents: [defineAgent({ name: "lead", model, tools: [look] })], stores });
  const agent = await runtime.agent("lead", { agentId: "desk" });
  await agent.start();
  await agent.executeTurn("go").result;
  await runtime.shutdown();
  return stores;
}

async function exported(stores: Stores, options: { namesOnly?: boolean } = {}): Promise<string> {
  const feed = new Feed(options);
  feed.add({ stores, tenant: "default" });
  const text = JSON.stringify(await feed.export("desk"));
  feed.close();
  const folder = mkdtempSync(join(tmpdir(), "troupe-recording-"));
  folders.push(folder);
  const path = join(folder, "run.json");
  writeFileSync(path, text);
  return path;
}

it("a recording of a tree has the answers by their step and the results by their call", async () => {
  const recording = await readRecording({ stores: await played(), agentId: "desk" });
  const desk = recording.agent("desk");
  expect(desk?.answer("desk#1", 1)?.attempts).toMatchObject([{ outcome: { type: "model.responded" } }]);
  expect(desk?.answer("desk#1", 2)?.message?.content).toBe("done");
  expect(desk?.answers).toHaveLength(2);
  const result = desk?.result("desk#1:1:0");
  expect(result).toMatchObject({ name: "look", effect: "once", arguments: { at: secret } });
  expect(result?.message?.content).toBe(`seen ${secret}`);
  expect(recording.redacted).toBe(0);
});

it("an exported run is the same recording with redacted texts, and stores accept it", async () => {
  const path = await exported(await played());
  for (const source of [path, pathToFileURL(path)]) {
    const recording = await readRecording(source);
    expect(recording.agent("desk")?.result("desk#1:1:0")?.message?.content).toBe("seen [redacted]");
    expect(recording.redacted).toBeGreaterThan(2);
    expect([...recording.definitions.values()][0]?.tools[0]?.description).toBe("Looks with [redacted].");
    expect(await memoryStores().importTree(importableTree(recording), "test")).toBe("imported");
  }
});

it("an exported run with a redacted definition can be inspected", async () => {
  const { readFile } = await import("node:fs/promises");
  const text = await readFile(await exported(await played()), "utf8");
  const { stores, tenant, runId } = await importRun(text);
  expect(await stores.readAgent({ tenant, agentId: runId })).toMatchObject({ agentId: "desk" });
});

it("a source without a run is refused with the reason", async () => {
  const stores = await played();
  await expect(readRecording({ stores, agentId: "gone" })).rejects.toThrow('there is no agent "gone"');
  await expect(readRecording("/nowhere/run.json")).rejects.toThrow("/nowhere/run.json");
  await expect(readRecording(new URL("https://example.com/run.json"))).rejects.toThrow("file: URL");
  await expect(readRecording(await exported(stores, { namesOnly: true }))).rejects.toThrow("--names-only");
});
