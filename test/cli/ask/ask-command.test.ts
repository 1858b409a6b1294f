import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { documentsIn, folderAt } from "../../../src/cli/documents.ts";
import { questionToResume } from "../../../src/cli/job/ask-job.ts";
import { teamOf } from "../../../src/cli/job/ask-team.ts";
import { offlineSpeedOf } from "../../../src/cli/job/offline-speed.ts";
import { askJobOf, newAskJob, withUsableModel } from "../../../src/cli/job/job.ts";
import type { AgentIdentity, AgentRecord } from "../../../src/state/index.ts";
import { memoryStores, type Stores } from "../../../src/stores/index.ts";

const job = { command: "ask", question: "What is it?", files: null, model: "offline", maxReaders: 6 } as const;

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

  test("is refused if it needs a key and none is set, also when a job is resumed", () => {
    expect(() => withUsableModel({ ...job, model: "gpt-5" }, {})).toThrow(/set OPENAI_API_KEY/);
    expect(withUsableModel(job, {})).toBe(job);
  });
});

test("a job survives as metadata, and other metadata is not a job", () => {
  expect(askJobOf(JSON.parse(JSON.stringify(job)) as Record<string, never>)).toEqual(job);
  expect(askJobOf({ command: "run", file: "/x.ts", input: "y" })).toBeUndefined();
  expect(askJobOf({ ...job, maxReaders: 0 })).toBeUndefined();
});

describe("the documents", () => {
  test("are this project's README and docs by default, wherever the command is started", () => {
    const { root, only } = documentsIn(null);
    expect(only).toContain("README.md");
    for (const name of only ?? []) expect(existsSync(join(root, name)), name).toBe(true);
  });

  test("must be an existing folder; its absolute path is saved", () => {
    expect(folderAt("test", process.cwd())).toBe(join(process.cwd(), "test"));
    expect(() => folderAt("none", process.cwd())).toThrow(/no such folder/);
    expect(() => folderAt("package.json", process.cwd())).toThrow(/not a folder/);
  });
});

describe("the team", () => {
  test("has limits: the lead on steps, tokens and time, each reader its own", () => {
    const lead = teamOf(job, { reach: "here" });
    expect(lead.limits).toMatchObject({ maxSteps: 12, maxTokens: 600_000, maxActiveMs: 600_000 });
    const reader = lead.tools.get("reader");
    expect(reader?.kind === "subagent" && reader.limits).toMatchObject({ maxSteps: 8, maxTokens: 120_000 });
  });

  test("has the same definition each time, so that a resumed job is unchanged", () => {
    expect(teamOf(job, { reach: "here" }).ref).toEqual(teamOf({ ...job }, { reach: "here" }).ref);
  });

  test("has as many readers as requested, in its instructions and in fact", () => {
    const lead = teamOf({ ...job, maxReaders: 1 }, { reach: "here" });
    const reader = lead.tools.get("reader");
    expect(reader?.kind === "subagent" && reader.policy.maxChildren).toBe(1);
    expect(lead.instructions).toContain("at most 1 file,");
    expect(lead.instructions).not.toContain("6 files");
  });

  test("has the pace from the environment, and refuses an invalid one", () => {
    expect(offlineSpeedOf({})).toBeUndefined();
    expect(offlineSpeedOf({ TROUPE_OFFLINE_SPEED: "15" })).toBe(15);
    expect(() => offlineSpeedOf({ TROUPE_OFFLINE_SPEED: "fast" })).toThrow(/TROUPE_OFFLINE_SPEED is "fast"/);
  });
});

const asEnded = (record: AgentRecord): AgentRecord => ({ ...record, openTurnId: null, turnCount: 1 });

/** A store with questions of these ages, each with an open turn, no turn yet, or an ended turn. */
async function questions(ages: Readonly<Record<string, "open" | "none" | "ended">>): Promise<Stores> {
  const stores = memoryStores();
  const ended = new Set<string>();
  for (const [index, [agentId, state]] of Object.entries(ages).entries()) {
    const key = { tenant: "default", agentId };
    await stores.createAgent({ ...identity(agentId), createdAt: index, metadata: { ...job } }, null);
    if (state === "none") continue;
    await stores.openTurn(key, { input: "x", actorId: null, limits: null, ifBusy: "refuse" }, 1);
    if (state === "open") continue;
    ended.add(agentId);
  }
  return {
    ...stores,
    listAgents: async (filter) =>
      (await stores.listAgents(filter)).map((record) => (ended.has(record.agentId) ? asEnded(record) : record)),
  };
}

async function resumed(stores: Stores): Promise<string | undefined> {
  return (await questionToResume(stores))?.record.agentId;
}

describe("the question that --resume continues", () => {
  test("is the newest unfinished one", async () => {
    expect(await resumed(await questions({ a: "open", b: "open", c: "ended" }))).toBe("b");
  });

  test("is also one that was interrupted before its first turn", async () => {
    expect(await resumed(await questions({ a: "none", b: "ended" }))).toBe("a");
  });

  test("is otherwise the newest of all", async () => {
    expect(await resumed(await questions({ z: "ended", b: "ended" }))).toBe("b");
    expect(await resumed(memoryStores())).toBeUndefined();
  });
});

function identity(agentId: string): AgentIdentity {
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
