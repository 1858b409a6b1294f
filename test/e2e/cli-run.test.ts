// Agents of a user's file, and the errors of wrong command lines.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { first, inFull, rows } from "../support/full.ts";
import { runCli, workFolder } from "./cli-process.ts";

/** Answers with the number of messages in its prompt, so that a continued conversation is visible. */
const counting = `{
  name: "counting",
  provider: "test",
  countPromptTokens: () => 10,
  generate: async ({ messages }) => ({
    content: \`\${messages.length} messages, the last: \${messages.at(-1).content}\`,
    toolCalls: [],
    usage: { inputTokens: 10, outputTokens: 5 },
    finishReason: "stop",
    model: "counting",
  }),
}`;

const files = {
  "agent.mjs": `import { defineAgent } from "troupe";
export const agent = defineAgent({ name: "counter", model: ${counting} });
`,
  "spent.ts": `import { defineAgent, type AgentDefinition } from "troupe";
const agent: AgentDefinition = defineAgent({ name: "spent", model: ${counting}, budget: { maxTokens: 0 } });
export default agent;
`,
  "failing.mjs": `import { defineAgent } from "troupe";
const model = { ...${counting}, generate: () => Promise.reject(new TypeError("the wire is cut")) };
export const agents = [defineAgent({ name: "failing", model, maxModelAttempts: 1 })];
`,
  "interrupted.mjs": `import { once } from "node:events";
import { defineAgent } from "troupe";
const model = ${counting};
/** As a person does at the terminal, in the middle of the only step. */
const generate = async (request) => {
  for (const name of (process.env.PRESSED ?? "").split(",")) {
    const heard = name && once(process, name);
    if (name) process.kill(process.pid, name);
    await heard;
  }
  return await model.generate(request);
};
export const agent = defineAgent({ name: "interrupted", model: { ...model, generate } });
`,
  "empty.mjs": "export const other = 1;\n",
  "broken.mjs": "import './nowhere.mjs';\n",
};

let folder: ReturnType<typeof workFolder>;
beforeAll(() => {
  folder = workFolder(files);
});
afterAll(() => folder.remove());

describe("troupe run", () => {
  test("runs a turn, and the next one of the same conversation", async () => {
    const first = await runCli(folder.path, ["run", "agent.mjs", "Hello", "--agent-id", "desk-7", "--quiet"]);
    expect(first).toMatchObject({ code: 0, stdout: "1 messages, the last: Hello\n" });
    const second = await runCli(folder.path, ["run", "agent.mjs", "Again", "--agent-id", "desk-7", "--quiet"]);
    expect(second.stdout).toBe("3 messages, the last: Again\n");
    const shown = await runCli(folder.path, ["show", "desk-7"]);
    expect(shown.stdout).toMatch(/2 turns ended/);
  });

  inFull(() => {
    test("a killed job is resumed from the file it came from", async () => {
      const store = ["--store", "killed.db"];
      const killed = await runCli(folder.path, ["run", "agent.mjs", "Hello", ...store], {
        TROUPE_FAULT: "model.effect:1",
      });
      expect(killed.code).toBe("SIGKILL");
      const resumed = await runCli(folder.path, ["resume", "--quiet", ...store]);
      expect(resumed).toMatchObject({ code: 0, stdout: "1 messages, the last: Hello\n" });
    });
  });

  test("Ctrl-C in the last step: the turn ends, nothing stays paused, and the next one runs", async () => {
    const words = ["run", "interrupted.mjs", "Hello", "--agent-id", "desk-8"];
    const first = await runCli(folder.path, words, { PRESSED: "SIGINT" });
    expect(first.code).toBe(0);
    expect(first.stdout).toContain("Pausing at the next safe point");
    expect(first.stdout).toContain("The turn ended before it could pause.");
    expect((await runCli(folder.path, ["list"])).stdout).toMatch(/^desk-8 +interrupted +finished /m);
    expect((await runCli(folder.path, ["show", "desk-8"])).stdout).toMatch(/^desk-8: interrupted, finished, /);
    expect(await runCli(folder.path, words)).toMatchObject({ code: 0 });
  });

  test("Ctrl-C twice exits immediately, and the turn can be resumed later", async () => {
    const words = ["run", "interrupted.mjs", "Hello", "--agent-id", "desk-9"];
    const left = await runCli(folder.path, words, { PRESSED: "SIGINT,SIGINT" });
    expect(left.code).toBe(130);
    expect(left.stderr).toMatch(/^Left at once; resume with: .*resume desk-9$/m);
    expect(await runCli(folder.path, ["resume", "desk-9", "--quiet"])).toMatchObject({ code: 0 });
  });

  test("a reached budget exits with 3, and names the account", async () => {
    const { code, stderr, stdout } = await runCli(folder.path, ["run", "spent.ts", "Hello", "--quiet"]);
    expect({ code, stdout }).toEqual({ code: 3, stdout: "" });
    expect(stderr).toMatch(/token_limit, spent, this turn: 0 of 0 tokens/);
  });

  inFull(() => {
    test("a failure exits with 1, and names what failed", async () => {
      const { code, stderr } = await runCli(folder.path, ["run", "failing.mjs", "Hello", "--quiet"]);
      expect(code).toBe(1);
      expect(stderr).toContain("the wire is cut");
    });
  });

  test.each(
    rows(
      [
        [["run", "none.mjs", "x"], "there is no file none.mjs"],
        [["run", "empty.mjs", "x"], "empty.mjs exports no agent"],
        [["run", "broken.mjs", "x"], "broken.mjs cannot be loaded: "],
        [["run", "agent.mjs", "x", "--agent", "other"], 'agent.mjs exports no agent "other"; it has "counter"'],
        [["run", "agent.mjs", "x", "--agent-id", "a/b"], 'agentId "a/b"'],
      ],
      first,
    ),
  )("%j is wrong usage", async (words, message) => {
    const { code, stderr } = await runCli(folder.path, words);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
    expect(stderr.trim().split("\n")).toHaveLength(1);
  });
});

describe("wrong command lines", () => {
  test.each(
    rows(
      [
        [["lst"], "unknown command 'lst' (Did you mean list?)"],
        [["ask", "--qestion", "x"], "unknown option '--qestion' (Did you mean --question?)"],
        [["ask", "extra"], "too many arguments for 'ask'"],
        [["ask", "--json", "--quiet"], "cannot be used with"],
        [["ask", "--max-readers", "0"], "Expected a whole number from 1 to 50."],
        [["ask", "--question", " "], "It must not be empty."],
        [["ask", "--files", "none"], "--files none: there is no such folder"],
        [["ask", "--model", "gpt-5-mini"], "set OPENAI_API_KEY"],
        [["ask", "--resume", "--question", "x"], "--resume continues an earlier question"],
        [["show"], "missing required argument 'agentId'"],
      ],
      first,
    ),
  )("%j: one line and exit code 2", async (words, message) => {
    const { code, stdout, stderr } = await runCli(folder.path, words);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(message);
    expect(stderr.trim().split("\n")).toHaveLength(1);
  });

  test("without a command it prints the help, as a usage error", async () => {
    const { code, stderr } = await runCli(folder.path, []);
    expect(code).toBe(2);
    expect(stderr).toContain("Usage: troupe");
  });
});

describe("--help", () => {
  test.each(
    rows(
      [
        [],
        ["ask"],
        ["run"],
        ["chat"],
        ["requests"],
        ["approve"],
        ["reject"],
        ["answer"],
        ["list"],
        ["show"],
        ["resume"],
        ["abort"],
      ],
      first,
    ),
  )("troupe %s", async (...words) => {
    const { code, stdout, stderr } = await runCli(folder.path, [...words, "--help"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/^Usage: troupe/);
    expect(stdout).toMatch(/Examples:\n {2}\$ npx troupe /);
  });
});
