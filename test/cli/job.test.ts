import { describe, expect, test } from "vitest";
import { defineAgent } from "../../src/agents/index.ts";
import { commandLine } from "../../src/cli/cli-context.ts";
import { heardText } from "../../src/cli/commands/abort.ts";
import { listLines } from "../../src/cli/commands/list.ts";
import { exitCodeOf, failureOf } from "../../src/cli/failure.ts";
import { definitionsIn, typeScriptHint } from "../../src/cli/job/agent-file.ts";
import type { LastTurn } from "../../src/cli/job/agent-status.ts";
import { copyWithinMs, type SignalSource, watchInterrupts } from "../../src/cli/job/interrupts.ts";
import { EventFeed } from "../../src/cli/job/tree-events.ts";
import { readableId, shortAgentId } from "../../src/cli/view/format.ts";
import { InvalidInputError, InvariantError, StoreUnavailableError } from "../../src/errors/index.ts";
import { offlineModel } from "../../src/model/index.ts";
import type { TroupeEvent } from "../../src/state/index.ts";
import { eventSample } from "./support/samples.ts";

describe("exit codes", () => {
  test.each([
    ["completed", "completed", 0],
    ["completed", "steps_limit", 0],
    ["failed", "error", 1],
    ["failed", "retry_limit", 1],
    ["stopped", "steps_limit", 3],
    ["stopped", "token_limit", 3],
    ["stopped", "cost_limit", 3],
    ["stopped", "time_limit", 3],
    ["stopped", "user_requested", 130],
    ["stopped", "stop_requested", 0],
  ] as const)("a turn that is %s for %s gives %i", (status, stopReason, code) => {
    expect(exitCodeOf({ status, stopReason })).toBe(code);
  });
});

describe("errors", () => {
  test("are one line with their code, and wrong input is a usage error", () => {
    expect(failureOf(new InvalidInputError("no such\n  folder"), {})).toEqual({
      text: "troupe: invalid_input: no such folder",
      exitCode: 2,
    });
  });

  test("contain a hint if one is known", () => {
    expect(
      failureOf(new StoreUnavailableError("locked", { details: { path: "a.db", code: "SQLITE_BUSY" } }), {}).text,
    ).toMatch(/locked \(another process has locked the file/);
  });

  test("report a full disk once, with a hint", () => {
    const full = new StoreUnavailableError("no space is left", { details: { path: "a.db", code: "SQLITE_FULL" } });
    expect(failureOf(full, {}).text).toBe("troupe: store_unavailable: no space is left");
  });

  test.each([
    ["ECONNREFUSED", "nothing listens at this address: start the server"],
    ["NOAUTH", "give the password in the address"],
    ["OOM", "try again in a moment"],
  ])("of Redis contain a hint for its reply: %s", (code, hint) => {
    expect(failureOf(new StoreUnavailableError("away", { details: { code } }), {})).toMatchObject({
      text: expect.stringContaining(hint),
      exitCode: 1,
    });
  });

  test("show a stack only if requested", () => {
    const error = new InvariantError("broken");
    expect(failureOf(error, {}).text).not.toContain("\n");
    expect(failureOf(error, { TROUPE_DEBUG: "1" }).text).toContain("job.test.ts");
    expect(failureOf(new Error("odd"), {})).toEqual({
      text: "troupe: unexpected error: odd (set TROUPE_DEBUG=1 for the stack)",
      exitCode: 1,
    });
  });
});

describe("printed commands work as this program was started", () => {
  const clone = { main: "/srv/troupe/src/cli/main.ts", directory: "/srv/troupe" };
  test.each([
    [{ ...clone, script: "start" }, "ask", ["--resume"], "npm start -- --resume"],
    [{ ...clone, script: "start" }, "show", ["ask-a~b"], "npm run troupe -- show ask-a~b"],
    [{ ...clone, script: undefined }, "show", ["x"], "node src/cli/main.ts show x"],
    [
      { main: "/p/node_modules/troupe/dist/cli/main.js", directory: "/p", script: "start" },
      "show",
      ["x"],
      "npx troupe show x",
    ],
    [
      { ...clone, script: "start" },
      "ask",
      ["--store", "my jobs/it's.db"],
      "npm start -- --store 'my jobs/it'\\''s.db'",
    ],
  ])("%j %s %j", (invocation, command, parameters, line) => {
    expect(commandLine(invocation, command, parameters)).toBe(line);
  });
});

function watched(isForwarded = false) {
  const listeners = new Map<string, () => void>();
  const source: SignalSource = {
    on: (signal, listener) => listeners.set(signal, listener),
    off: (signal) => listeners.delete(signal),
  };
  const heard: (string | number)[] = [];
  let now = 0;
  const stop = watchInterrupts(
    source,
    { pause: () => heard.push("pause"), leave: (code) => heard.push(code) },
    { now: () => now, isForwarded },
  );
  return { heard, listeners, stop, at: (time: number, signal: string) => ((now = time), listeners.get(signal)?.()) };
}

describe("Ctrl-C", () => {
  test("pauses first and exits at the second, however soon that comes", () => {
    const { heard, at } = watched();
    at(0, "SIGINT");
    at(0, "SIGINT");
    expect(heard).toEqual(["pause", 130]);
  });

  test("arrives twice under npm, which forwards it, and counts once", () => {
    const { heard, at } = watched(true);
    at(0, "SIGINT");
    at(copyWithinMs - 1, "SIGINT");
    expect(heard).toEqual(["pause"]);
    at(copyWithinMs - 1, "SIGINT");
    expect(heard).toEqual(["pause", 130]);
  });

  test("under npm a second one counts after the time in which a forwarded copy can arrive", () => {
    const { heard, at } = watched(true);
    at(0, "SIGINT");
    at(copyWithinMs, "SIGINT");
    expect(heard).toEqual(["pause", 130]);
  });

  test("signals to terminate exit immediately, and none is handled after the end", () => {
    const { heard, at, stop, listeners } = watched();
    at(0, "SIGTERM");
    at(0, "SIGHUP");
    expect(heard).toEqual([143, 129]);
    stop();
    expect(listeners.size).toBe(0);
  });
});

function stepAt(cursor: string | null): TroupeEvent {
  return eventSample({ type: "step.completed", cursor });
}

test("the feed delivers durable events once and in order, and all others as they come", () => {
  const seen: (string | null)[] = [];
  const feed = new EventFeed((event: TroupeEvent) => seen.push(event.cursor));
  feed.skip([stepAt("1.1.0"), stepAt("2.2.0")]);
  for (const cursor of ["2.2.0", "2.2.1", null, "2.10.0", "2.9.0", "10.3.0", "9.99.0", null]) feed.push(stepAt(cursor));
  expect(seen).toEqual(["2.2.1", null, "2.10.0", "10.3.0", null]);
});

test("ids are pronounceable", () => {
  expect(readableId("ask", () => 0)).toBe("ask-bababa");
  expect(readableId("ask", () => 0.999_999)).toBe("ask-zuzuzu");
  expect([shortAgentId("ask-mibodu"), shortAgentId("ask-mibodu~3fa9c1d2e4")]).toEqual(["ask-mibodu", "~3fa9c1"]);
});

test("an agent file's definitions are found under any of the three names, each once", () => {
  const [one, two] = ["one", "two"].map((name) => defineAgent({ name, model: offlineModel() }));
  expect(definitionsIn({ default: two, agent: one, agents: [one, two, null, "x"] })).toEqual([two, one]);
  expect(definitionsIn({ agents: one })).toEqual([one]);
  expect(definitionsIn({ other: one })).toEqual([]);
});

function unknown(ending: string): Error {
  const error = new TypeError(`Unknown file extension "${ending}" for /srv/agent${ending}`);
  return Object.assign(error, { code: "ERR_UNKNOWN_FILE_EXTENSION" });
}

test("a Node that does not run TypeScript is named, with a hint", () => {
  for (const ending of [".ts", ".mts"]) {
    expect(typeScriptHint(unknown(ending), "v22.14.0")).toMatch(
      /Node 22\.14\.0 .*NODE_OPTIONS=--experimental-strip-types, or use Node 24/,
    );
  }
  expect(typeScriptHint(unknown(".css"), "v22.14.0")).toBe("");
  expect(typeScriptHint(new Error('Unknown file extension ".ts"'), "v22.14.0")).toBe("");
});

test("an abort reports whether a process was there to receive it", () => {
  expect(heardText({ pid: 7, isAlive: true }, "resume x")).toBe("Process 7 runs it and ends its turn.");
  expect(heardText({ pid: 7, isAlive: "unknown" }, "resume x")).toContain("of another machine");
  expect(heardText(undefined, "troupe resume x")).toContain("(troupe resume x)");
});

test("a list flags unfinished agents and names the process that runs them", () => {
  const agent = {
    agentId: "ask-mibodu",
    definition: "lead",
    status: "busy",
    isUnfinished: true,
    pid: null,
    turns: 0,
    subagents: 2,
    openRequests: 0,
    createdAt: 0,
    lastActivity: new Date(2026, 0, 2, 3, 4).getTime(),
    lastTurn: null,
    task: "What is it?",
    cursor: "0:ask-mibodu",
  };
  const ended: readonly LastTurn[] = [
    { status: "completed", stopReason: "completed" },
    { status: "stopped", stopReason: "token_limit" },
    { status: "failed", stopReason: "error" },
  ];
  const agents = [
    { ...agent, pid: 7 },
    { ...agent, status: "paused" },
    agent,
    { ...agent, isUnfinished: false, status: "failed" },
    ...ended.map((lastTurn) => ({ ...agent, isUnfinished: false, status: "ready", lastTurn })),
    { ...agent, isUnfinished: false, status: "paused", lastTurn: ended[0] ?? null },
    { ...agent, isUnfinished: false, status: "ready" },
  ];
  const lines = listLines(agents, Number.POSITIVE_INFINITY);
  const states = lines.slice(1, 10).map((line) => line.split(/ {2,}/)[2]);
  expect(states).toEqual([
    "unfinished, runs (process 7)",
    "unfinished, paused",
    "unfinished",
    "failed",
    "finished",
    "stopped (token_limit)",
    "failed",
    "finished, paused",
    "no turn yet",
  ]);
  expect(lines.at(-1)).toBe("2 agents to resume: see `resume --help`.");
  expect(listLines([{ ...agent, isUnfinished: false }], 80)).toHaveLength(2);
});
