import { existsSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { createRuntime, type Runtime } from "../../src/index.ts";
import { terminalLog, textLog } from "../../src/telemetry/index.ts";
import { createFakeClock } from "../../src/testing/index.ts";
import { leadOfReaders, temporaryFolder } from "./team.ts";

async function runtimeWith(use: (runtime: Runtime) => unknown): Promise<Runtime> {
  const runtime = await createRuntime({ agents: [leadOfReaders()], clock: createFakeClock() });
  use(runtime);
  return runtime;
}

async function turnOf(runtime: Runtime, agentId: string): Promise<string> {
  const agent = await runtime.agent("lead", { agentId });
  await agent.start();
  return (await agent.executeTurn("Compare north and south").result).status;
}

it("H8: the terminal log names each agent with its tools, tokens and cost", async () => {
  const lines: string[] = [];
  const runtime = await runtimeWith((it) => terminalLog(it, { write: (line) => lines.push(line) }));
  await turnOf(runtime, "desk");
  await runtime.shutdown();
  const shown = lines.map((line) => line.replaceAll(/~[0-9a-f]{4,}/g, "~…")).join("");
  expect(shown).toContain("00:00:00.000  lead@desk  turn 1 began\n");
  expect(shown).toContain("  lead@desk/reader~…  step 1: fetch_page took 0 ms\n");
  expect(shown).toMatch(
    / {2}lead@desk {2}turn completed in 0 ms, 2 steps, 2 tool calls, \d+ tokens \(\d+ in, \d+ out\), \$0\.\d+\n/,
  );
  expect(shown).not.toContain("Compare");
});

it("H8: the terminal log prints nothing if it is quiet or closed", async () => {
  const write = vi.fn<(line: string) => void>();
  const runtime = await runtimeWith((it) => terminalLog(it, { write, quiet: true }));
  const log = terminalLog(runtime, { write });
  log.close();
  await turnOf(runtime, "desk");
  await runtime.shutdown();
  expect(write).not.toHaveBeenCalled();
});

it("a failing terminal is reported once, and the turn is not affected", async () => {
  const warned = vi.spyOn(process, "emitWarning").mockReturnValue();
  const write = vi.fn<(line: string) => void>().mockImplementation(() => {
    throw new Error("EPIPE");
  });
  const runtime = await runtimeWith((it) => terminalLog(it, { write }));
  expect(await turnOf(runtime, "desk")).toBe("completed");
  await runtime.shutdown();
  expect(warned.mock.calls.map(([message]) => message)).toEqual(["the terminal log could not process an event: EPIPE"]);
  warned.mockRestore();
});

it("H8: a text log has a file for each tree, with times, readable by its owner only", async () => {
  const directory = join(temporaryFolder(), "made", "logs");
  const runtime = await runtimeWith(() => undefined);
  const log = textLog(runtime, { directory }, { content: true });
  await Promise.all([turnOf(runtime, "desk"), turnOf(runtime, "Desk")]);
  await runtime.shutdown();
  await log.close();
  expect(readdirSync(directory).toSorted()).toEqual(["%44esk.log", "desk.log"]);
  const path = join(directory, "desk.log");
  const lines = readFileSync(path, "utf8").split("\n");
  expect(lines[0]).toBe("2026-01-01T00:00:00.000Z  lead@desk  turn 1 began: “Compare north and south”");
  expect(lines.filter((line) => line.includes("fetch_page took"))).toHaveLength(2);
  expect(lines.at(-2)).toMatch(/: “the end”$/);
  expect(lines.at(-1)).toBe("");
  expect(lines.join()).not.toContain("Desk");
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

it("a text log with one path contains all agents, and appends to an existing file", async () => {
  const path = join(temporaryFolder(), "all.log");
  writeFileSync(path, "before\n");
  const runtime = await runtimeWith(() => undefined);
  const log = textLog(runtime, path);
  await turnOf(runtime, "one");
  await log.flush();
  const first = readFileSync(path, "utf8");
  expect(first).toMatch(/^before\n2026.*lead@one {2}turn 1 began\n/);
  await turnOf(runtime, "two");
  await log.close();
  await turnOf(runtime, "three");
  await runtime.shutdown();
  const whole = readFileSync(path, "utf8");
  expect(whole.startsWith(first)).toBe(true);
  expect(whole).toContain("lead@two  turn completed");
  expect(whole).not.toContain("lead@three");
});

it("a failing disk is reported once and fails no turn; the next file is still written", async () => {
  const warned = vi.spyOn(process, "emitWarning").mockReturnValue();
  const folder = temporaryFolder();
  writeFileSync(join(folder, "file"), "");
  writeFileSync(join(folder, "elsewhere"), "untouched");
  // S6: a link out of the folder is not followed.
  symlinkSync(join(folder, "elsewhere"), join(folder, "desk.log"));
  const runtime = await runtimeWith(() => undefined);
  const broken = textLog(runtime, join(folder, "file", "x.log"));
  const linked = textLog(runtime, { directory: folder });
  expect(await turnOf(runtime, "desk")).toBe("completed");
  await broken.flush();
  expect(await turnOf(runtime, "table")).toBe("completed");
  await Promise.all([broken.close(), linked.close()]);
  await runtime.shutdown();
  const messages = warned.mock.calls.map(([message]) => String(message));
  expect(messages).toEqual([
    expect.stringMatching(/^a log could not be written: .*x\.log cannot be written: E/),
    expect.stringMatching(/^a log could not be written: .*desk\.log cannot be written: E/),
  ]);
  expect(readFileSync(join(folder, "elsewhere"), "utf8")).toBe("untouched");
  expect(existsSync(join(folder, "table.log"))).toBe(true);
  warned.mockRestore();
});

it("a text log without a path is refused", async () => {
  const runtime = await runtimeWith(() => undefined);
  expect(() => textLog(runtime, "")).toThrow('a text log needs a location: a path, or { directory: "logs" }');
  await runtime.shutdown();
});
