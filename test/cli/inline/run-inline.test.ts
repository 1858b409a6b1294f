// `run` and `resume` on a terminal: the same process asks and continues.
import { PassThrough } from "node:stream";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { CliContext } from "../../../src/cli/cli-context.ts";
import { isInteractive, runJob } from "../../../src/cli/job/run-job.ts";
import { storeLocation } from "../../../src/cli/job/store-location.ts";
import { memoryStores, type Stores } from "../../../src/index.ts";
import { cashier, payment, questionOf } from "../support/asking.ts";

let stores: Stores;
let paid: string[];
beforeEach(() => {
  stores = memoryStores();
  paid = [];
});
afterEach(() => stores.close());

/** A terminal at which a person types these lines, each at a new question. */
function terminal(replies: readonly string[]) {
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  const stdout = Object.assign(new PassThrough(), { isTTY: true, columns: 100, rows: 30 });
  let text = "";
  let seen = 0;
  const left = [...replies];
  stdout.setEncoding("utf8").on("data", (piece: string) => {
    text += piece;
    const asked = /\[l\]ater: |for later\): |as JSON: /g;
    asked.lastIndex = seen;
    const found = asked.exec(text);
    if (found === null || left.length === 0) return;
    seen = asked.lastIndex;
    setImmediate(() => stdin.write(left.shift() ?? ""));
  });
  const context = {
    environment: { TERM: "xterm", NO_COLOR: "1" },
    directory: "/",
    invocation: { main: "/troupe/dist/cli/main.js", directory: "/", script: undefined },
    stdin: stdin as unknown as CliContext["stdin"],
    stdout: stdout as unknown as CliContext["stdout"],
    out: (line: string) => stdout.write(`${line}\n`),
    note: (line: string) => stdout.write(`${line}\n`),
  };
  return { context, text: () => text };
}

function job(isResumed: boolean) {
  const calls = [payment("Ann", 1), questionOf("Which day?")];
  return {
    agents: [cashier(calls, paid)],
    rootAgentId: "till",
    metadata: {},
    input: "Pay.",
    isResumed,
    header: ["Input: Pay."],
    resumeCommand: "troupe resume till",
    showCommand: "troupe show till",
    workerWords: ["--agents", "till.ts"],
    store: storeLocation({ environment: {} }, {}),
  } as const;
}

test("requests are decided inline, and the answer follows", async () => {
  const { context, text } = terminal(["y\r", "on Friday\r"]);
  expect(await runJob(context, stores, job(false), {})).toBe(0);
  expect(paid).toEqual(["Ann 1"]);
  expect(text()).toContain("cashier till asks for approval of pay (till#1:1:0:1):");
  expect(text()).toMatch(/paid 1 to Ann; on Friday\n[\s\S]*Show it again: troupe show till\n$/);
});

test("an edit shows the arguments for changing, and the tool gets the typed ones", async () => {
  const { context } = terminal(["e\r", '\u0015{"to":"Cy","amount":3}\r', "on Friday\r"]);
  expect(await runJob(context, stores, job(false), {})).toBe(0);
  expect(paid).toEqual(["Cy 3"]);
});

test("a postponed request stays open: the process exits with 4, and a later one asks again", async () => {
  const first = terminal(["l\r", "\r"]);
  expect(await runJob(first.context, stores, job(false), {})).toBe(4);
  expect(first.text()).toContain("npx troupe approve till#1:1:0:1\n");
  expect(first.text()).toContain("npx troupe answer till#1:1:1:1 'your answer'\n");
  const second = terminal(["y\r", "on Friday\r"]);
  expect(await runJob(second.context, stores, job(true), {})).toBe(0);
  expect(paid).toEqual(["Ann 1"]);
});

test("Ctrl-C at a question leaves all requests open, and does not pause the agent", async () => {
  const { context } = terminal(["\u0003"]);
  expect(await runJob(context, stores, job(false), {})).toBe(4);
  expect(await stores.readAgent({ tenant: "default", agentId: "till" })).toMatchObject({ pause: null });
  expect(await stores.requests({ tenant: "default", status: "open" })).toHaveLength(2);
});

test.each([
  [{}, true, true, true],
  [{}, true, false, false],
  [{}, false, true, false],
  [{ json: true }, true, true, false],
  [{ quiet: true }, true, true, false],
])("%j with a terminal at stdin (%s) and stdout (%s) asks inline: %s", (options, stdin, stdout, expected) => {
  const context = { stdin: { isTTY: stdin }, stdout: { isTTY: stdout } } as Parameters<typeof isInteractive>[0];
  expect(isInteractive(context, options)).toBe(expected);
});
