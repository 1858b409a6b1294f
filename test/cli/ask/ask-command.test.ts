import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { toResume } from "../../../src/cli/ask/ask-job.ts";
import { documentsIn, folderAt } from "../../../src/cli/ask/documents.ts";
import { type AskJob, askJobOf, newAskJob, withUsableModel } from "../../../src/cli/ask/job.ts";
import { askTeam } from "../../../src/cli/ask/team.ts";
import { type AgentRecord, newRecord } from "../../../src/state/index.ts";

const job: AskJob = { command: "ask", question: "What is it?", files: null, model: "offline", maxReaders: 6 };

describe("the model of a question", () => {
  test.each([
    [{}, undefined, "offline"],
    [{ OPENAI_API_KEY: "" }, undefined, "offline"],
    [{ OPENAI_API_KEY: "k" }, undefined, "gpt-5-mini"],
    [{ OPENAI_API_KEY: "k" }, "gpt-5", "gpt-5"],
    [{ OPENAI_API_KEY: "k" }, "offline", "offline"],
  ])("with %j and --model %s is %s", (environment, model, expected) => {
    expect(newAskJob({ question: "x", files: null, model }, environment).model).toBe(expected);
  });

  test("that needs a key is refused where there is none, also when a job is carried on", () => {
    expect(() => withUsableModel({ ...job, model: "gpt-5" }, {})).toThrow(/set OPENAI_API_KEY/);
    expect(withUsableModel(job, {})).toBe(job);
  });
});

test("a job survives as metadata, and other metadata is none", () => {
  expect(askJobOf(JSON.parse(JSON.stringify(job)) as Record<string, never>)).toEqual(job);
  expect(askJobOf({ command: "run", file: "/x.ts", input: "y" })).toBeUndefined();
  expect(askJobOf({ ...job, maxReaders: 0 })).toBeUndefined();
});

describe("the documents", () => {
  test("are by default this project's README and docs, wherever it is started from", () => {
    const { root, only } = documentsIn(null);
    expect(only).toContain("README.md");
    for (const name of only ?? []) expect(existsSync(join(root, name)), name).toBe(true);
  });

  test("are a folder that exists; its absolute path is kept", () => {
    expect(folderAt("test", process.cwd())).toBe(join(process.cwd(), "test"));
    expect(() => folderAt("none", process.cwd())).toThrow(/no such folder/);
    expect(() => folderAt("package.json", process.cwd())).toThrow(/no folder/);
  });
});

describe("the team", () => {
  test("is bounded: the lead by steps, tokens and time, each reader by its own", () => {
    const lead = askTeam(job, {});
    expect(lead.limits).toMatchObject({ maxSteps: 12, maxTokens: 600_000, maxActiveMs: 600_000 });
    const reader = lead.tools.get("reader");
    expect(reader?.kind === "subagent" && reader.limits).toMatchObject({ maxSteps: 8, maxTokens: 120_000 });
  });

  test("is defined alike each time, so that a job that is carried on finds itself unchanged", () => {
    expect(askTeam(job, {}).ref).toEqual(askTeam({ ...job }, {}).ref);
  });

  test("has as many readers as were asked for, in words and in fact", () => {
    const lead = askTeam({ ...job, maxReaders: 1 }, {});
    const reader = lead.tools.get("reader");
    expect(reader?.kind === "subagent" && reader.policy.maxChildren).toBe(1);
    expect(lead.instructions).toContain("at most 1 file,");
    expect(lead.instructions).not.toContain("6 files");
  });

  test("refuses a speed that is none", () => {
    expect(() => askTeam(job, { TROUPE_OFFLINE_SPEED: "fast" })).toThrow(/TROUPE_OFFLINE_SPEED is "fast"/);
  });
});

function record(agentId: string, changes: Partial<AgentRecord>) {
  return { job, record: { ...newRecord(identity(agentId)), turnCount: 1, ...changes } };
}

describe("what --resume takes up", () => {
  test("the newest question that is not finished", () => {
    const asked = [record("c", {}), record("b", { openTurnId: "b#1" }), record("a", { openTurnId: "a#1" })];
    expect(toResume(asked)?.record.agentId).toBe("b");
  });

  test("one that was cut off before its first turn counts too", () => {
    expect(toResume([record("b", {}), record("a", { turnCount: 0 })])?.record.agentId).toBe("a");
  });

  test("else the newest of all", () => {
    expect(toResume([record("b", {}), record("a", {})])?.record.agentId).toBe("b");
    expect(toResume([])).toBeUndefined();
  });
});

function identity(agentId: string): Parameters<typeof newRecord>[0] {
  return {
    tenant: "default",
    agentId,
    rootAgentId: agentId,
    parentAgentId: null,
    parentTurnId: null,
    parentStep: null,
    parentCallId: null,
    depth: 0,
    definition: { name: "lead", hash: "0" },
    ownerId: null,
    sessionId: null,
    createdAt: 0,
    accountId: null,
    parentAccountId: null,
    grantedTools: null,
    maxDepth: 3,
    turnLimits: null,
    metadata: { ...job },
  };
}
