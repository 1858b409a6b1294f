// The kinds of decision, from the command line.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { AgentRequest } from "../../src/state/index.ts";
import { first, inFull, isFull, rows } from "../support/full.ts";
import { askingAgents, paidIn } from "./asking-agents.ts";
import { runCli, workFolder } from "./cli-process.ts";

let folder: ReturnType<typeof workFolder>;
beforeEach(() => {
  folder = workFolder(askingAgents);
});
afterEach(() => folder.remove());

function cli(...words: readonly string[]) {
  return runCli(folder.path, words);
}

async function openRequests(): Promise<AgentRequest[]> {
  const { stdout } = await cli("requests", "--json");
  const lines = stdout.split("\n").filter((line) => line !== "");
  return lines.map((line) => JSON.parse(line) as AgentRequest);
}

/** Of three open requests one has to be named, and a decision must fit its kind. */
async function expectRefusals(): Promise<void> {
  const several = await cli("answer", "Friday");
  expect(several.code).toBe(2);
  expect(several.stderr).toContain("3 requests match; name one of them: till#1:1:0:1, till#1:1:1:1, till#1:1:2:1");
  const wrong = await cli("approve", "till#1:1:0");
  expect(wrong).toMatchObject({ code: 2 });
  expect(wrong.stderr).toContain('of kind "question" and cannot be approved; it can be answered, rejected');
}

const run = ["run", "till.mjs", "pay Ann 5", "--agent-id", "till"];

describe("other decisions", () => {
  test("reject: the model gets the reason, and nothing is paid", async () => {
    await cli(...run);
    const { code, stdout } = await cli("reject", "--reason", "too much", "--quiet");
    expect({ code, stdout }).toEqual({ code: 0, stdout: "Rejected by user: too much\n" });
    expect(paidIn(folder.path)).toEqual([]);
  });

  inFull(() => {
    test("--edit: invalid arguments decide nothing, valid ones replace the model's", async () => {
      await cli(...run);
      for (const [edit, message] of [
        ['{"to":5}', "must have required property 'amount'"],
        ["{to:1}", "Expected a JSON object"],
        ["[1]", "Expected a JSON object"],
      ] as const) {
        const { code, stderr } = await cli("approve", "--edit", edit);
        expect(code, edit).toBe(2);
        expect(stderr).toContain(message);
        expect(stderr.trim().split("\n")).toHaveLength(1);
      }
      expect(await openRequests()).toHaveLength(1);
      const { stdout } = await cli("approve", "--edit", '{"to":"Bo","amount":7}');
      expect(stdout).toContain("approved with other arguments");
      expect(paidIn(folder.path)).toEqual(["Bo 7"]);
    });
  });

  test("answer: a question, and a call that its caller executes; each continues as far as it can", async () => {
    const asked = await cli("run", "till.mjs", "ask Which day?, scan 3, scan 4", "--agent-id", "till");
    expect(asked.code).toBe(4);
    if (isFull) await expectRefusals();
    expect((await cli("answer", "till#1:1:0", "on Friday", "--quiet")).code).toBe(4);
    expect((await cli("answer", "till#1:1:1", '{"rows": 3}', "--quiet")).code).toBe(4);
    const last = await cli("answer", "no paper", "--error", "--quiet");
    expect(last).toMatchObject({ code: 0, stdout: 'on Friday; {"rows":3}; no paper\n' });
    expect(last.stderr).toContain("Deciding till#1:1:2:1, the only open request");
  });

  inFull(() => {
    test("a subagent's request shows its path, and the job continues with the others still open", async () => {
      const asked = await cli("run", "till.mjs", "clerk pay Ann 5, ask Which day?", "--agent-id", "till");
      expect(asked.code).toBe(4);
      expect((await cli("requests")).stdout).toMatch(/chief till › clerk ~[0-9a-f]{6} +pay/);
      const approved = await cli("approve", "till~");
      expect(approved.code, approved.stderr).toBe(4);
      expect(approved.stdout).toMatch(/clerk ~[0-9a-f]{6}: done after 2 steps/);
      expect(paidIn(folder.path)).toEqual(["Ann 5"]);
      expect((await cli("answer", "Friday", "--quiet")).stdout).toBe("paid 5 to Ann; Friday\n");
    });

    test("resume continues all waiting agents, one after the other", async () => {
      await cli(...run);
      await cli("run", "till.mjs", "pay Bo 6", "--agent-id", "other");
      const resumed = await cli("resume");
      expect(resumed.code, resumed.stderr).toBe(4);
      expect(resumed.stdout).toContain("asks for approval of pay (till#1:1:0:1)");
      expect(resumed.stdout).toContain("asks for approval of pay (other#1:1:0:1)");
    });
  });
});

describe("nothing to decide", () => {
  inFull(() => {
    test("is reported plainly", async () => {
      await cli("run", "till.mjs", "Hello", "--agent-id", "till");
      expect(await cli("requests")).toMatchObject({
        code: 0,
        stdout: "Nothing in ./.troupe/ask.db waits for a decision or an answer.\n",
      });
      expect((await cli("requests", "--all")).stdout).toBe("There are no requests in ./.troupe/ask.db.\n");
      expect(await cli("requests", "--json")).toMatchObject({ code: 0, stdout: "" });
      for (const words of [["approve"], ["reject", "x"], ["answer", "x", "y"]]) {
        const { code, stderr } = await cli(...words);
        expect(code).toBe(2);
        expect(stderr).toMatch(/^troupe: not_found: .*`requests` lists the open requests.*\n$/);
      }
      const { code, stderr } = await cli("answer", "three", "words", "here");
      expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining("put the answer in quotes") });
    });
  });

  test.each(rows([["requests"], ["approve"], ["reject", "x"], ["answer", "x"]], first))(
    "%s reports a missing store, and creates no file",
    async (...words) => {
      const { code, stderr } = await cli(...words, "--store", "none/jobs.db");
      expect(code).toBe(2);
      expect(stderr).toMatch(/^troupe: invalid_input: there is no store at none\/jobs\.db; .*\n$/);
    },
  );
});
