// Requests to people on the command line: opened by one process, decided by another, done once.
import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { AgentRequest } from "../../src/state/index.ts";
import { inFull } from "../support/full.ts";
import { askingAgents, paidIn } from "./asking-agents.ts";
import { runCli, startCli, workFolder } from "./cli-process.ts";

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

const run = ["run", "till.mjs", "pay Ann 5", "--agent-id", "till"];
const payment = "till#1:1:0:1";

describe("a job that waits for an approval", () => {
  test("exits with 4 and prints how to answer; the approving process continues it, and it is done once", async () => {
    const asked = await cli(...run);
    expect(asked.code, asked.stderr).toBe(4);
    expect(asked.stdout).toContain(
      `chief till asks for approval of pay (${payment}):\n  pay({"to":"Ann","amount":5})\n`,
    );
    expect(asked.stdout).toMatch(/main\.ts approve till#1:1:0:1\n/);
    expect(paidIn(folder.path)).toEqual([]);

    const table = await cli("requests");
    expect(table.stdout).toMatch(
      /^till#1:1:0:1 +\d+ s +approval +chief till +pay +pay\(\{"to":"Ann","amount":5\}\) +never$/m,
    );
    expect(await openRequests()).toMatchObject([
      { requestId: payment, arguments: { to: "Ann", amount: 5 }, path: "chief till" },
    ]);
    expect((await cli("list")).stdout).toMatch(/unfinished, waits for 1 decision/);

    const approved = await cli("approve", "till", "--by", "anna", "--reason", "fine");
    expect(approved.code, approved.stderr).toBe(0);
    expect(approved.stdout).toContain(`${payment} is approved by anna: fine.\n`);
    expect(approved.stdout).toContain("paid 5 to Ann");
    expect(paidIn(folder.path)).toEqual(["Ann 5"]);

    expect((await cli("requests")).stdout).toBe("Nothing in ./.troupe/ask.db waits for a decision or an answer.\n");
    expect((await cli("requests", "--all")).stdout).toMatch(/approved by anna: fine$/m);
    expect((await cli("show", "till")).stdout).toMatch(
      /^Requests:\nREQUEST[^\n]*STATE\ntill#1:1:0:1 .*approved by anna: fine$/m,
    );
  });

  inFull(() => {
    test.each([["--json"], ["--quiet"]])("with %s prints its open requests on stderr", async (option) => {
      const { code, stdout, stderr } = await cli(...run, option);
      expect(code).toBe(4);
      expect(stderr).toContain(`asks for approval of pay (${payment})`);
      expect(stdout).not.toContain("asks for approval");
      expect((await cli("resume", "till", option)).code).toBe(4);
    });

    test.each(["request.opened:1", "commit.after:2", "commit.after:3"])(
      "and is killed at %s asks again when it is resumed, and pays once",
      async (fault) => {
        const killed = await runCli(folder.path, run, { TROUPE_FAULT: fault });
        expect(killed.code).toBe("SIGKILL");
        expect((await cli("resume", "--quiet")).code).toBe(4);
        expect(await openRequests()).toHaveLength(1);
        expect((await cli("approve", "--quiet")).stdout).toBe("paid 5 to Ann\n");
        expect(paidIn(folder.path)).toEqual(["Ann 5"]);
      },
    );

    test("a process that approves and is killed before the tool runs has still decided", async () => {
      await cli(...run);
      const killed = await runCli(folder.path, ["approve"], { TROUPE_FAULT: "tool.intent:1" });
      expect(killed.code).toBe("SIGKILL");
      expect(await openRequests()).toEqual([]);
      const resumed = await cli("resume", "--quiet");
      expect(resumed.code, resumed.stderr).toBe(0);
      expect(paidIn(folder.path).length).toBeLessThanOrEqual(1);
    });
  });
});

inFull(() => {
  describe("a process that is killed while it waits", () => {
    test("is no longer needed: the request is approved elsewhere, and the job ends there", async () => {
      const chat = startCli(folder.path, ["chat", "till.mjs", "--agent-id", "till"], {}, true);
      chat.type("pay Ann 5");
      await chat.line((line) => line.includes("asks for approval of pay"));
      chat.signal("SIGKILL");
      expect((await chat.ended).code).toBe("SIGKILL");
      const approved = await cli("approve");
      expect(approved.code, approved.stderr).toBe(0);
      expect(approved.stdout).toContain("paid 5 to Ann");
      expect((await cli("resume", "till", "--quiet")).stdout).toBe("paid 5 to Ann\n");
      expect(paidIn(folder.path)).toEqual(["Ann 5"]);
    });

    test("receives the decision while it is alive, and continues the job itself", async () => {
      const chat = startCli(folder.path, ["chat", "till.mjs", "--agent-id", "till"], {}, true);
      chat.type("pay Ann 5");
      await chat.line((line) => line.includes("asks for approval of pay"));
      const approved = await cli("approve", "--by", "anna");
      expect(approved).toMatchObject({ code: 0 });
      expect(approved.stdout).toContain(`Process ${chat.pid} runs it and continues it.\n`);
      await chat.line((line) => line === "paid 5 to Ann");
      chat.endInput();
      const { code, stdout } = await chat.ended;
      expect(code).toBe(0);
      expect(stdout).toContain("pay was approved by anna");
      expect(paidIn(folder.path)).toEqual(["Ann 5"]);
    });
  });
});

inFull(() => {
  describe("a request is decided once", () => {
    test("of two concurrent approvals one wins, and the other is told whose", async () => {
      await cli(...run);
      const both = await Promise.all(["anna", "bo"].map((by) => cli("approve", payment, "--no-run", "--by", by)));
      expect(new Set(both.map(({ code }) => code))).toEqual(new Set([0, 2]));
      const winner = both[0]?.code === 0 ? "anna" : "bo";
      const loser = both.find(({ code }) => code === 2);
      expect(loser?.stderr).toBe(`troupe: request_conflict: request "${payment}" was approved by ${winner}\n`);
      expect((await cli("requests", "--all")).stdout).toContain(`approved by ${winner}`);
      const late = await cli("reject", payment, "--no-run");
      expect(late).toMatchObject({
        code: 2,
        stdout: "",
        stderr: `troupe: request_conflict: request "${payment}" was approved by ${winner}\n`,
      });
      expect(paidIn(folder.path)).toEqual([]);
      expect((await cli("resume", "--quiet")).stdout).toBe("paid 5 to Ann\n");
    });

    test("--no-run stores it without the agent file, which is otherwise required first", async () => {
      await cli(...run);
      rmSync(join(folder.path, "till.mjs"));
      const refused = await cli("approve");
      expect(refused.code).toBe(2);
      expect(refused.stderr).toMatch(/^troupe: invalid_input: there is no file .*till\.mjs/);
      expect(await openRequests()).toHaveLength(1);
      const recorded = await cli("approve", "--no-run");
      expect(recorded.code, recorded.stderr).toBe(0);
      expect(recorded.stdout).toMatch(/Recorded; no process runs it\. Resume it with: .*main\.ts resume till\n$/);
      expect(await openRequests()).toEqual([]);
    });

    test("a paused agent stays paused", async () => {
      await cli(...run);
      const chat = startCli(folder.path, ["chat", "till.mjs", "--agent-id", "till"], {}, true);
      await chat.line((line) => line.includes("asks for approval of pay"));
      chat.type("/pause", "l", "/exit");
      expect((await chat.ended).code).toBe(130);
      const approved = await cli("approve");
      expect(approved.stdout).toMatch(/Recorded\. till is paused; resume it with: .*resume till\n$/);
      expect(paidIn(folder.path)).toEqual([]);
      expect((await cli("resume", "till", "--quiet")).stdout).toBe("paid 5 to Ann\n");
    });
  });
});
