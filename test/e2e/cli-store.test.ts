// Commands that read or change a store while another process works on it.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { first, inFull, rows } from "../support/full.ts";
import { allotment, eventOf, question, runCli, startCli, workFolder } from "./cli-process.ts";

let folder: ReturnType<typeof workFolder>;
beforeEach(() => {
  folder = workFolder(allotment);
});
afterEach(() => folder.remove());

const ask = ["ask", "--files", "notes", "--question", question, "--json"];

describe("while a job runs in another process", () => {
  test("list, show and abort see it, and the abort takes effect", async () => {
    const job = startCli(folder.path, ask, { TROUPE_OFFLINE_SPEED: "2" });
    const line = await job.line((text) => text.includes('"type":"text.delta"'));
    const rootAgentId = eventOf(line)?.rootAgentId ?? "";

    const listed = JSON.parse((await runCli(folder.path, ["list", "--json"])).stdout) as Record<string, unknown>;
    expect(listed).toMatchObject({ agentId: rootAgentId, isUnfinished: true, pid: job.pid, task: question });

    const shown = JSON.parse((await runCli(folder.path, ["show", rootAgentId, "--json"])).stdout) as {
      readonly tree: readonly { readonly name: string }[];
      readonly accounts: readonly unknown[];
      readonly messages: readonly { readonly content: string }[];
    };
    expect(shown).toMatchObject({ agent: { agentId: rootAgentId }, isUnfinished: true, pid: job.pid });
    expect(shown.tree.map((agent) => agent.name)).toEqual(expect.arrayContaining(["lead", "reader"]));
    expect(shown.accounts.length).toBeGreaterThan(1);
    expect(shown.messages[0]?.content).toBe(question);

    const aborted = await runCli(folder.path, ["abort", rootAgentId]);
    expect(aborted.stdout).toContain(`Process ${job.pid} runs it and ends its turn.`);
    const { code, stdout } = await job.ended;
    expect(code).toBe(130);
    expect(stdout).toMatch(/"type":"turn.stopped".*"stopReason":"user_requested"/);
    expect((await runCli(folder.path, ["abort", rootAgentId])).stdout).toContain("no open turn to abort");
  });
});

inFull(() => {
  describe("a job that no process runs", () => {
    test("can be aborted; the process that resumes it finds the abort", async () => {
      await runCli(folder.path, ask, { TROUPE_FAULT: "model.effect:4" });
      const aborted = await runCli(folder.path, ["abort", "ask-"]);
      expect(aborted.stdout).toContain("No process runs it: ");
      const resumed = await runCli(folder.path, ["resume", "ask-", "--quiet"]);
      expect(resumed.code).toBe(130);
      expect(resumed.stderr).toContain("user_requested");
    });

    test("resume without an id reports that nothing is unfinished", async () => {
      await runCli(folder.path, ask);
      const { code, stderr, stdout } = await runCli(folder.path, ["resume"]);
      expect({ code, stdout }).toEqual({ code: 0, stdout: "" });
      expect(stderr).toContain("Nothing in ./.troupe/ask.db is unfinished.");
    });

    test("a subagent is found by the start of its id, and shown with its own history", async () => {
      const { stdout } = await runCli(folder.path, ask);
      const spawned = stdout.split("\n").find((line) => line.includes('"type":"subagent.spawned"')) ?? "";
      const { childId } = JSON.parse(spawned) as { childId: string };
      const shown = await runCli(folder.path, ["show", childId.slice(0, -8)]);
      expect(shown.stdout).toMatch(new RegExp(`^${childId}: reader, `));
      expect(shown.stdout).toMatch(/^ {2}File: \w+\.md$/m);
    });
  });
});

describe("a missing store", () => {
  test.each(rows([["list"], ["show", "x"], ["abort", "x"], ["resume"], ["resume", "x"], ["ask", "--resume"]], first))(
    "is reported by %s %s, which creates no file",
    async (...words) => {
      const { code, stdout, stderr } = await runCli(folder.path, [...words, "--store", "none/jobs.db"]);
      expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
      expect(stderr).toMatch(/^troupe: invalid_input: there is no store at none\/jobs\.db; .*\n$/);
      expect(existsSync(join(folder.path, "none"))).toBe(false);
    },
  );

  test("a file that is not a database is refused and left unchanged", async () => {
    const { code, stderr } = await runCli(folder.path, ["list", "--store", "notes/fees.md"]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^troupe: corrupt_record: .*\n$/);
    expect(readdirSync(join(folder.path, "notes")).sort()).toEqual(["fees.md", "members.md", "tools.md", "water.md"]);
  });
});
