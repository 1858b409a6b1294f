// `troupe dev`: a chat whose process is replaced at each save. Saves happen while turns are open, through a rename as editors do.
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { decisionPath, get, post } from "../inspector/http-client.ts";
import { inFull } from "../support/full.ts";
import { startOnTerminal, type TerminalCommand } from "../support/on-terminal.ts";
import { type CliProcess, runCli, startCli, workFolder } from "./cli-process.ts";

let folder: ReturnType<typeof workFolder>;
const running: CliProcess[] = [];
beforeEach(() => {
  folder = workFolder({ "agent.ts": agentFile({}), "words.ts": wordsFile("one") });
});
afterEach(async () => {
  for (const dev of running.splice(0)) {
    dev.signal("SIGKILL");
    await dev.ended;
  }
  folder.remove();
});

function wordsFile(word: string): string {
  return `export const word: string = ${JSON.stringify(word)};\n`;
}

interface AgentFile {
  /** Code before the agent. */
  readonly before?: string;
  /** Code of the tool \`work\`; \`gate()\` waits until the file \`go\` exists. */
  readonly work?: string;
  readonly effect?: "none" | "once";
  readonly parameters?: string;
  readonly tools?: string;
  readonly name?: string;
  readonly needsApproval?: boolean;
}

/** An agent that calls \`work\` for the message "work", and says its result; it repeats other messages. */
function agentFile({
  before = "",
  work = 'return "worked with " + word;',
  effect = "none",
  parameters = '{ type: "object", properties: { what: { type: "string" } }, required: ["what"], additionalProperties: false }',
  tools = "[work]",
  name = "desk",
  needsApproval = false,
}: AgentFile): string {
  return `import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { defineAgent, defineTool } from "troupe";
import { word } from "./words.ts";

async function gate(name: string): Promise<void> {
  appendFileSync("begun.txt", process.pid + "\\n");
  while (!existsSync(name)) await delay(10);
}
${before}
const work = defineTool({
  name: "work",
  description: "Works.",
  effect: ${JSON.stringify(effect)},
  needsApproval: ${needsApproval},
  parameters: JSON.stringify(${parameters}),
  execute: async () => {
    ${work}
  },
});
const model = {
  name: "scripted",
  provider: "test",
  countPromptTokens: () => 10,
  generate: async ({ messages }) => {
    const last = messages.findLastIndex(({ role }) => role === "user");
    const results = messages.slice(last + 1).filter(({ role }) => role === "tool");
    const text = messages[last].content;
    const isWork = text === "work" && results.length === 0;
    return {
      content: isWork ? "" : (results.at(-1)?.content ?? word + " heard: " + text),
      toolCalls: isWork ? [{ id: "c", name: "work", arguments: JSON.stringify({ what: "it" }) }] : [],
      usage: { inputTokens: 10, outputTokens: 5 },
      finishReason: isWork ? "tool_calls" : "stop",
      model: "scripted",
    };
  },
};
export const agent = defineAgent({ name: ${JSON.stringify(name)}, model: model as never, tools: ${tools} });
`;
}

/** Saves a file as editors do: a new one in its place. */
function save(name: string, text: string): void {
  const path = join(folder.path, name);
  writeFileSync(`${path}.tmp`, text);
  renameSync(`${path}.tmp`, path);
}

function onTerminal(...words: readonly string[]): TerminalCommand {
  return startOnTerminal(folder.path, ["dev", "agent.ts", "--agent-id", "desk-7", ...words]);
}

function piped(...words: readonly string[]): CliProcess {
  const dev = startCli(folder.path, ["dev", "agent.ts", "--agent-id", "desk-7", "--no-inspect", ...words], {}, true);
  running.push(dev);
  return dev;
}

/** The pids of the processes in which the tool has begun, once there are so many. */
async function begun(count: number): Promise<number[]> {
  return await vi.waitUntil(
    () => {
      const pids = pidsBegun();
      return pids.length >= count ? pids : undefined;
    },
    { timeout: 60_000 },
  );
}

function pidsBegun(): number[] {
  const path = join(folder.path, "begun.txt");
  return existsSync(path) ? readFileSync(path, "utf8").trimEnd().split("\n").map(Number) : [];
}

function reloads(dev: CliProcess): number {
  return dev.outputSoFar().split("Reloaded").length - 1;
}

/** Whether a process is there. */
function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** The server of the inspector, from the address that `dev` prints. */
function serverAt([url]: RegExpExecArray) {
  const { origin, hash } = new URL(url);
  const token = hash.slice("#token=".length);
  return { origin, url, watchUrl: url, tokens: { watch: token, act: token }, close: async () => {} };
}

const gated = agentFile({ work: 'await gate("go"); return "worked with " + word;' });

describe("a save", () => {
  test("in the middle of a turn loses nothing: the turn goes on with the new code, and a half-typed line stays", async () => {
    save("agent.ts", gated);
    const dev = onTerminal("--no-inspect", "--drain-seconds", "1");
    await dev.said(/Loaded agent\.ts \(2 files watched\)/);
    dev.type("work");
    await begun(1);
    save("words.ts", wordsFile("two"));
    await dev.said(/words\.ts has changed: the turn stops at its next safe point, within 1 s/);
    await dev.said(/Reloaded agent\.ts \(2 files watched\)/);
    await begun(2);
    save("go", "");
    await dev.said(/worked with two/);
    dev.press("and");
    await dev.said(/> and/);
    save("words.ts", wordsFile("three"));
    await dev.said(/Reloaded[^]*Reloaded[^]*> and/);
    dev.type(" then?");
    await dev.said(/three heard: and then\?/);
    dev.endInput();
    expect(await dev.ended).toBe(0);
    const { stdout } = await runCli(folder.path, ["list", "--json"]);
    expect(JSON.parse(stdout)).toMatchObject({ agentId: "desk-7", turns: 2 });
  });

  test("of a broken file shows where it is broken, and waits; lines of a pipe wait too", async () => {
    const dev = piped();
    dev.type("one?");
    await dev.line((line) => line === "one heard: one?");
    save("agent.ts", "const broken = ;\n");
    await vi.waitUntil(() => dev.errorsSoFar().includes("Waiting for a change"), { timeout: 60_000 });
    expect(dev.errorsSoFar()).toContain("agent.ts cannot be loaded: Expression expected (at agent.ts:1:16)");
    expect(dev.errorsSoFar()).toContain("    const broken = ;\n                   ^\n");
    dev.type("two?", "three?");
    save("words.ts", wordsFile("two"));
    save("agent.ts", agentFile({}));
    await dev.line((line) => line === "two heard: three?");
    dev.endInput();
    const { code, stdout } = await dev.ended;
    expect(code).toBe(0);
    expect(stdout).toMatch(/two heard: two\?[^]*two heard: three\?[^]*Resume with: .* dev agent\.ts --agent-id desk-7/);
  });

  test("leaves the inspector at its address: requests that wait are decided there and in the chat, before and after it", async () => {
    save("agent.ts", agentFile({ needsApproval: true }));
    const dev = onTerminal();
    const page = serverAt(await dev.said(/http:\/\/127\.0\.0\.1:\d+\/#token=[\w-]+/));
    dev.type("work");
    await dev.said(/Approve\?/);
    save("agent.ts", "export const nothing = 1;\n");
    await dev.said(/agent\.ts exports no agent/);
    expect(await post(page, decisionPath("desk-7#1:1:0:1"), { verdict: "approved" })).toMatchObject({ status: 204 });
    const refused = await post(page, "/api/agents/desk-7/turns", { key: "k", text: "Hello" });
    expect(refused.error?.message).toContain("agent.ts is not running");
    save("agent.ts", agentFile({ needsApproval: true }));
    await dev.said(/worked with one/);
    expect(await post(page, "/api/agents/desk-7/turns", { key: "k", text: "from the page" })).toMatchObject({
      status: 200,
    });
    await dev.said(/one heard: from the page/);
    expect(await get<object>(page, "/api/info")).toMatchObject({ definitions: ["desk"], text: "written" });
    dev.type("work");
    await dev.said(/Approve\?[^]*Approve\?/);
    dev.type("y");
    await dev.said(/worked with one[^]*worked with one/);
    dev.endInput();
    expect(await dev.ended).toBe(0);
  });
});

describe("a process that dies", () => {
  test("is started again and continues the turn; with its parent it ends", async () => {
    save("agent.ts", gated);
    const dev = piped();
    dev.type("work");
    const [first = 0] = await begun(1);
    process.kill(first, "SIGKILL");
    const [, second = 0] = await begun(2);
    expect(dev.errorsSoFar()).toContain("agent.ts ended its process (SIGKILL); it is started again");
    dev.signal("SIGKILL");
    await vi.waitUntil(() => !isRunning(second), { timeout: 60_000 });
    save("go", "");
    const later = piped();
    later.endInput();
    await later.line((line) => line.startsWith("worked with one"));
    expect((await later.ended).code).toBe(0);
  });

  inFull(() => {
    test("again without a change in between waits for one", async () => {
      save("agent.ts", agentFile({ work: "process.exit(7);" }));
      const dev = piped();
      dev.type("work");
      await vi.waitUntil(() => dev.errorsSoFar().includes("ended its process (exit code 7) again"), {
        timeout: 60_000,
      });
      save("agent.ts", agentFile({}));
      expect(await dev.line((line) => line.startsWith("worked"))).toBe("worked with one");
    });

    test("while it is loaded waits for a change, and so does one that does not export an agent any more", async () => {
      save("agent.ts", agentFile({ before: "process.exit(7);" }));
      const dev = piped();
      await vi.waitUntil(() => dev.errorsSoFar().includes("(exit code 7) while it was loaded"), { timeout: 60_000 });
      save("agent.ts", agentFile({}));
      dev.type("Hello");
      await dev.line((line) => line === "one heard: Hello");
      save("agent.ts", agentFile({ name: "clerk" }));
      await vi.waitUntil(() => dev.errorsSoFar().includes('desk-7 is a conversation with "desk"'), { timeout: 60_000 });
      save("agent.ts", agentFile({}));
      dev.endInput();
      expect((await dev.ended).code).toBe(0);
    });
  });
});

inFull(() => {
  test("a call of class once that is cut off has an unknown outcome, and is not repeated", async () => {
    save("agent.ts", agentFile({ effect: "once", work: 'await gate("go"); return "done";' }));
    const dev = piped("--drain-seconds", "1");
    dev.type("work");
    await begun(1);
    save("words.ts", wordsFile("two"));
    await dev.line((line) => line.includes("outcome_unknown"));
    expect(dev.errorsSoFar()).toContain("1 call did not end within 1 s");
    expect(await begun(1)).toHaveLength(1);
  });

  test("a call whose tool is gone fails for the model, and the turn goes on", async () => {
    save("agent.ts", agentFile({ needsApproval: true }));
    const dev = piped();
    dev.type("work");
    await dev.line((line) => line.includes("asks for approval"));
    save("agent.ts", agentFile({ tools: "[]" }));
    await dev.line((line) => line.startsWith("Reloaded"));
    dev.type("y");
    expect(await dev.line((line) => line.includes("work failed"))).toContain(
      'The tool "work" is not available any more.',
    );
  });

  test("a signal stops the turn and tells how to come back; Ctrl-C ends the wait for a change", async () => {
    save("agent.ts", gated);
    const dev = piped("--drain-seconds", "1");
    dev.type("work");
    await begun(1);
    dev.signal("SIGTERM");
    const { code, stderr } = await dev.ended;
    expect(code).toBe(143);
    expect(stderr).toMatch(/Resume with: .* dev agent\.ts --agent-id desk-7\n$/);
    save("go", "");
    const left = piped();
    left.type("/exit");
    expect((await left.ended).code).toBe(0);
    save("agent.ts", "export const nothing = 1;\n");
    const waiting = piped();
    await vi.waitUntil(() => waiting.errorsSoFar().includes("Waiting for a change"), { timeout: 60_000 });
    waiting.signal("SIGINT");
    expect((await waiting.ended).code).toBe(130);
  });

  test("a second one with the same conversation is refused, and leaves the first alone", async () => {
    const first = piped();
    first.type("Hello");
    await first.line((line) => line === "one heard: Hello");
    const { code, stderr } = await piped().ended;
    expect(code).toBe(1);
    expect(stderr).toContain("already_owned");
    first.type("again");
    await first.line((line) => line === "one heard: again");
    first.endInput();
    expect((await first.ended).code).toBe(0);
  });

  test("new variables in .env, JSON that is imported and a --watch file reload the agent", async () => {
    writeFileSync(join(folder.path, "prompt.md"), "");
    writeFileSync(join(folder.path, "data.json"), '{ "word": "json" }');
    save(
      "agent.ts",
      agentFile({}).replace(
        'import { word } from "./words.ts";',
        'import data from "./data.json" with { type: "json" };\nif (existsSync(".env")) process.loadEnvFile(".env");\nconst word = process.env["WORD"] ?? data.word;',
      ),
    );
    const dev = piped("--watch", "prompt.md");
    dev.type("a");
    await dev.line((line) => line === "json heard: a");
    save("data.json", '{ "word": "newer" }');
    await dev.line((line) => line === "Reloaded agent.ts (3 files watched)");
    dev.type("b");
    await dev.line((line) => line === "newer heard: b");
    save(".env", "WORD=env\n");
    await vi.waitUntil(() => reloads(dev) === 2, { timeout: 60_000 });
    dev.type("c");
    await dev.line((line) => line === "env heard: c");
    save("prompt.md", "Be brief.");
    await vi.waitUntil(() => reloads(dev) === 3, { timeout: 60_000 });
    dev.endInput();
    expect((await dev.ended).code).toBe(0);
  });
});

test("wrong command lines start nothing", async () => {
  const faults = await Promise.all([
    runCli(folder.path, ["dev", "none.ts"]),
    runCli(folder.path, ["dev", "agent.ts", "--store", ":memory:"]),
    runCli(folder.path, ["dev", "agent.ts", "--watch", "none.md"]),
    runCli(folder.path, ["dev-session"]),
  ]);
  expect(faults.map(({ code }) => code)).toEqual([2, 2, 2, 2]);
  expect(faults.map(({ stderr }) => stderr)).toEqual([
    expect.stringContaining("there is no file none.ts"),
    expect.stringContaining("--store :memory: ends with each process"),
    expect.stringContaining("there is no file none.md"),
    expect.stringContaining("dev-session is started by `troupe dev FILE`"),
  ]);
});
