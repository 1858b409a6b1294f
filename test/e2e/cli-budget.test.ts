// Limits on the command line: named when they stop a turn, with the way to continue, and the overview of accounts.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { first, inFull, rows } from "../support/full.ts";
import { allotment, answer, question, runCli, workFolder } from "./cli-process.ts";

/** Calls the tool until it has three results; every call costs 15 tokens. */
const files = {
  "walker.mjs": `import { defineAgent, defineTool } from "troupe";
const step = defineTool({
  name: "step", description: "Goes on.", parameters: '{"type":"object","properties":{}}', effect: "none", execute: () => "on",
});
const model = {
  name: "walker",
  provider: "test",
  countPromptTokens: () => 10,
  generate: async ({ messages }) => {
    const steps = messages.filter(({ role }) => role === "tool").length;
    return {
      content: steps < 3 ? "" : \`there after \${steps} steps\`,
      toolCalls: steps < 3 ? [{ id: "c" + steps, name: "step", arguments: "{}" }] : [],
      usage: { inputTokens: 10, outputTokens: 5 },
      finishReason: steps < 3 ? "tool_calls" : "stop",
      model: "walker",
    };
  },
};
export default defineAgent({ name: "walker", model, tools: [step], maxOutputTokens: 20 });
export const agent = defineAgent({
  name: "priced", model: { ...model, provider: "openai", name: "gpt-5-mini" }, tools: [step], maxOutputTokens: 20,
});
`,
  ...allotment,
};

let folder: ReturnType<typeof workFolder>;
beforeAll(() => {
  folder = workFolder(files);
});
afterAll(() => folder.remove());
const cli = (...words: string[]) => runCli(folder.path, words);

describe("a budget on the command line", () => {
  inFull(() => {
    test("stops the turn, names the limit, and prints how to continue; a new budget continues it", async () => {
      const stopped = await cli("run", "walker.mjs", "Walk", "--agent-id", "walk-1", "--max-steps", "2");
      expect(stopped.code).toBe(3);
      expect(stopped.stdout).toContain("Stopped: steps_limit, walker, this turn: 2 of 2 steps.");
      expect(stopped.stdout).toMatch(/Continue with a new budget: .* resume walk-1 --max-steps 2\n/);
      const again = await cli("resume", "walk-1");
      expect(again.code).toBe(3);
      expect(again.stdout).toContain("resume walk-1 --max-steps 2\n");
      const gone = await cli("resume", "walk-1", "--max-steps", "2", "--quiet");
      expect(gone).toMatchObject({ code: 0, stdout: "there after 3 steps\n" });
      const completed = await cli("resume", "walk-1", "--max-steps", "2");
      expect(completed.code).toBe(2);
      expect(completed.stderr).toContain("the last turn of walk-1 is completed, so there is nothing to resume");
    });
  });

  test("warns at four fifths of a limit, once", async () => {
    const { stdout } = await cli("run", "walker.mjs", "Walk", "--agent-id", "walk-2", "--max-steps", "5");
    expect(stdout.match(/budget nearly used up: .*/g)).toEqual([
      "budget nearly used up: walker, this turn: 4 of 5 steps (80 %)",
    ]);
  });

  test.each(
    rows(
      [
        [["--max-steps", "0"], "Expected a whole number of at least 1, in digits."],
        [["--max-tokens", "many"], "Expected a whole number of at least 1, in digits."],
        [["--max-cost", "-1"], "Expected a number above 0, in digits: 30, or 0.25."],
        [["--max-seconds", "1e3"], "Expected a number above 0, in digits: 30, or 0.25."],
        [["--deadline", "tomorrow"], "Expected a time: 2026-11-21T18:00, or 90s, 15m, 2h from now."],
        [["--deadline", "2020-01-01T00:00Z"], "That is 2020-01-01T00:00:00.000Z, which has passed."],
      ],
      first,
    ),
  )("%j is wrong usage", async (words, message) => {
    const { code, stderr } = await cli("run", "walker.mjs", "Walk", ...words);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
    expect(stderr.trim().split("\n")).toHaveLength(1);
  });

  inFull(() => {
    test("requires a single agent", async () => {
      const { code, stderr } = await cli("resume", "--max-steps", "2");
      expect(code).toBe(2);
      expect(stderr).toContain("a budget applies to one turn: name the agent");
    });
  });
});

inFull(() => {
  describe("the limits of a question", () => {
    const ask = ["ask", "--files", "notes", "--question", question, "--store", "asked.db"];

    test("are those of `run`: they stop it, and --resume continues with new ones", async () => {
      const stopped = await cli(...ask, "--max-steps", "1");
      expect(stopped.code, stopped.stderr).toBe(3);
      expect(stopped.stdout).toMatch(/^Stopped: steps_limit, lead, this turn: 1 of 1 steps\.$/m);
      expect(stopped.stdout).toMatch(/resume ask-\w+ --max-steps 1 --store asked\.db\n/);
      const resumed = await cli("ask", "--resume", "--max-steps", "9", "--quiet", "--store", "asked.db");
      expect(resumed.code, resumed.stderr).toBe(0);
      expect(resumed.stdout).toMatch(answer);
      const again = await cli("ask", "--resume", "--max-steps", "9", "--store", "asked.db");
      expect(again.code).toBe(2);
      expect(again.stderr).toMatch(/the last turn of ask-\w+ is completed, so there is nothing to resume/);
    });
  });
});

inFull(() => {
  describe("costs", () => {
    test("are computed from the public prices even if no cost limit applies, now and later", async () => {
      const store = ["--store", "priced.db"];
      const run = await cli("run", "walker.mjs", "Walk", "--agent", "priced", "--quiet", ...store);
      expect(run.stdout).toBe("there after 3 steps\n");
      // Four calls of 10 and 5 tokens, at 0.25 and 2 dollars a million, each in whole millionths.
      expect((await cli("show", "--budget", ...store)).stdout).toMatch(/ gpt-5-mini +4 +40 +0 +20 +0 +\$0\.000052$/m);
    });
  });
});

inFull(() => {
  describe("show --budget", () => {
    test("shows the accounts of the named agent, or of the newest; as JSON too", async () => {
      const store = ["--store", "shown.db"];
      await cli("run", "walker.mjs", "Walk", "--agent-id", "walk-3", "--max-tokens", "500", ...store);
      const shown = await cli("show", "--budget", ...store);
      expect(shown.stdout.split("\n")).toEqual([
        "ACCOUNT                LIMIT   USED  RESERVED  UNCONFIRMED   OF",
        "walker walk-3, turn 1  steps      4         -            -   10",
        "                       tokens    60         -            -  500",
        "",
        "AGENT, ITS OWN CALLS  MODEL   CALLS  INPUT  CACHED  OUTPUT  REASONING  COST  NOTE",
        "walker walk-3         walker      4     40       0      20          0     ?",
        "",
      ]);
      const { stdout } = await cli("show", "walk", "--budget", "--json", ...store);
      expect(JSON.parse(stdout)).toMatchObject({
        agentId: "walk-3",
        accounts: [
          {
            id: "turn:walk-3#1",
            name: "walker",
            parentId: null,
            limits: [
              { limit: "maxSteps", used: 4, max: 10 },
              { limit: "maxTokens", used: 60, reserved: 0, unconfirmed: 0, max: 500 },
            ],
            models: { walker: { calls: 4, inputTokens: 40, outputTokens: 20 } },
          },
        ],
        agents: [{ agentId: "walk-3", own: { walker: { calls: 4 } }, tree: { walker: { calls: 4 } } }],
      });
    });

    test("fits the given width", async () => {
      const shown = await runCli(folder.path, ["show", "--budget", "--store", "shown.db"], { COLUMNS: "30" });
      expect(Math.max(...shown.stdout.split("\n").map((line) => line.length))).toBeLessThanOrEqual(30);
      expect(shown.stdout).toContain("  tokens 60/500");
    });
  });
});
