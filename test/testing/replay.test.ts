import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import {
  type AgentDefinition,
  createRuntime,
  defineAgent,
  defineTool,
  type Hooks,
  memoryStores,
  type Stores,
  subagent,
  summarize,
} from "../../src/index.ts";
import { Feed } from "../../src/inspector/index.ts";
import { replay, type ReplayResult } from "../../src/testing/replay.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { anyValues, classicValues, isTaken } from "../support/wrong-values.ts";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

interface Team {
  readonly prompt?: string | (() => string);
  readonly readerPrompt?: string;
  readonly readerName?: string;
  readonly description?: string;
  readonly parameter?: z.ZodType;
  readonly temperature?: number;
  readonly modelName?: string;
  readonly hooks?: Hooks;
  readonly maxSteps?: number;
  readonly needsApproval?: boolean;
  readonly more?: boolean;
  readonly output?: z.ZodType;
  readonly looks?: { count: number };
}

/** A lead that calls a tool, then a reader, then answers; the reader calls the tool. */
function team(options: Team = {}): AgentDefinition[] {
  const { prompt = "You lead.\nBe brief.", readerPrompt = "You read.", readerName = "reader", looks } = options;
  const look = defineTool({
    name: "look",
    description: options.description ?? "Looks.",
    parameters: z.object({ at: options.parameter ?? z.string() }),
    needsApproval: options.needsApproval ?? false,
    execute: ({ at }) => {
      if (looks) looks.count += 1;
      return `seen ${String(at)}`;
    },
  });
  const more = defineTool({ name: "more", description: "More.", parameters: z.object({}), execute: () => "more" });
  const shared = { temperature: options.temperature ?? 0.5, budget: { maxSteps: options.maxSteps ?? 8 } };
  const reader = defineAgent({
    ...shared,
    name: readerName,
    instructions: readerPrompt,
    model: scriptedModel(
      ({ messages }) =>
        messages.some(({ role }) => role === "tool")
          ? "read"
          : { toolCalls: [{ name: "look", arguments: { at: "home" } }] },
      { name: "small" },
    ),
    tools: [look],
  });
  const lead = defineAgent({
    ...shared,
    name: "lead",
    instructions: prompt,
    model: scriptedModel(
      ({ messages }) => {
        const results = messages.filter(({ role }) => role === "tool").length;
        if (results % 2 === 0 && results / 2 < messages.filter(({ role }) => role === "user").length) {
          return { toolCalls: [{ name: "look", arguments: { at: "there" } }] };
        }
        if (results % 2 === 1) return { toolCalls: [{ name: readerName, arguments: { input: "read it" } }] };
        return '{"answer": "done"}';
      },
      { name: options.modelName ?? "large" },
    ),
    tools: [look, subagent(reader, { name: readerName, description: "Reads." }), ...(options.more ? [more] : [])],
    ...(options.hooks ? { hooks: options.hooks } : {}),
    ...(options.output ? { output: options.output } : {}),
  });
  return [lead];
}

async function played(agents: AgentDefinition[], turns = 2): Promise<Stores> {
  const stores = memoryStores();
  const runtime = await createRuntime({ agents, stores });
  const agent = await runtime.agent("lead", { agentId: "desk" });
  await agent.start();
  for (let turn = 0; turn < turns; turn += 1) await agent.executeTurn(`go ${turn}`).result;
  await runtime.shutdown();
  return stores;
}

async function exported(stores: Stores): Promise<string> {
  const feed = new Feed();
  feed.add({ stores, tenant: "default" });
  const text = JSON.stringify(await feed.export("desk"));
  feed.close();
  const folder = mkdtempSync(join(tmpdir(), "troupe-replay-"));
  folders.push(folder);
  writeFileSync(join(folder, "run.json"), text);
  return join(folder, "run.json");
}

async function replayed(before: Team, after: Team, hooks?: "recorded"): Promise<ReplayResult> {
  const stores = await played(team(before));
  return await replay({ stores, agentId: "desk" }, { agents: team(after), ...(hooks ? { hooks } : {}) });
}

function divergence(result: ReplayResult) {
  if (result.isEqual) throw new Error("the runs are equal");
  return result;
}

describe("a replay of the same definitions", () => {
  it("is equal, calls no model, runs no tool, and gives the same result each time", async () => {
    const looks = { count: 0 };
    const stores = await played(team({ looks }));
    const ran = looks.count;
    const agents = team({ looks });
    const results = [
      await replay({ stores, agentId: "desk" }, { agents }),
      await replay({ stores, agentId: "desk" }, { agents }),
    ];
    expect(results[0]).toEqual({
      isEqual: true,
      rootAgentId: "desk",
      agents: 3,
      turns: 4,
      requests: 10,
      hooks: 0,
      calls: 6,
      notCompared: {},
      redacted: 0,
      changed: [],
    });
    expect(JSON.stringify(results[1])).toBe(JSON.stringify(results[0]));
    expect(looks.count).toBe(ran);
    expect(agents.map(({ model }) => (model as ReturnType<typeof scriptedModel>).calls)).toEqual([[]]);
  });

  it("is equal for an exported file", async () => {
    const file = await exported(await played(team()));
    expect(await replay(file, { agents: team() })).toMatchObject({ isEqual: true, requests: 10 });
  });

  it("is equal for a file whose secrets were redacted, in messages, prompts and arguments", async () => {
    const secret = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789";
    const options: Team = { prompt: `Use ${secret} and be brief.`, description: `Looks with ${secret}.` };
    const file = await exported(await played(team(options)));
    const result = await replay(file, { agents: team(options) });
    expect(result).toMatchObject({ isEqual: true, requests: 10 });
    expect(result.redacted).toBeGreaterThan(1);
    const other = divergence(
      await replay(file, { agents: team({ ...options, prompt: `Use ${secret} and be long.` }) }),
    );
    expect(other).toMatchObject({ part: "system prompt", divergedAt: { turn: 1, step: 1 } });
  });

  it("is equal while a turn waits for a decision, and after it", async () => {
    const stores = memoryStores();
    const runtime = await createRuntime({ agents: team({ needsApproval: true }), stores });
    const agent = await runtime.agent("lead", { agentId: "desk" });
    await agent.start();
    const turn = agent.executeTurn("go");
    for (let seen = 0; seen < 2; seen += 1) {
      await turn.settled;
      const source = { stores, agentId: "desk" };
      expect(await replay(source, { agents: team({ needsApproval: true }) })).toMatchObject({ isEqual: true });
      const [open] = await runtime.requests({ status: "open" });
      await runtime.decide(open?.requestId ?? "", { verdict: "edited", arguments: { at: "elsewhere" } });
    }
    await turn.result;
    await runtime.shutdown();
    expect(await replay({ stores, agentId: "desk" }, { agents: team({ needsApproval: true }) })).toMatchObject({
      isEqual: true,
      calls: 3,
    });
  });
});

describe("the first difference", () => {
  it("a changed prompt is found at its step, with the line that differs", async () => {
    const result = divergence(await replayed({}, { prompt: "You lead.\nBe long." }));
    expect(result.divergedAt).toEqual({ agentName: "lead", agentId: "desk", turn: 1, step: 1 });
    expect(result.part).toBe("system prompt");
    expect(result.expected).toBe("You lead.\nBe brief.");
    expect(result.got).toBe("You lead.\nBe long.");
    expect(result.diff).toBe("  You lead.\n- Be brief.\n+ Be long.");
  });

  it("a changed prompt of a subagent is found in the subagent", async () => {
    const result = divergence(await replayed({}, { readerPrompt: "You write." }));
    expect(result).toMatchObject({ part: "system prompt", divergedAt: { agentName: "reader", turn: 1, step: 1 } });
  });

  it("instructions that change during a conversation are found at the turn at which they change", async () => {
    let turn = 0;
    const before = { prompt: () => "You lead." };
    const after = { prompt: () => ((turn += 1) === 1 ? "You lead." : "You follow.") };
    const result = divergence(await replayed(before, after));
    expect(result).toMatchObject({ part: "system prompt", divergedAt: { agentName: "lead", turn: 2 } });
    expect(divergence(await replayed({}, { prompt: () => "Other." }))).toMatchObject({ part: "system prompt" });
    expect(await replayed({ prompt: "Same." }, { prompt: () => "Same." })).toMatchObject({ isEqual: true });
    expect(await replayed({ prompt: () => "Same." }, { prompt: "Same." })).toMatchObject({ isEqual: true });
  });

  it.each<[string, Team, Partial<ReturnType<typeof divergence>>, RegExp]>([
    ["description of a tool", { description: "Looks hard." }, { part: "tools" }, /-\s+"description": "Looks\."/],
    ["new tool", { more: true }, { part: "tools" }, /\+\s+"name": "more"/],
    ["parameter of a tool", { parameter: z.number() }, { part: "tools" }, /"type": "number"/],
    ["setting", { temperature: 0.9 }, { part: "settings" }, /-\s+"temperature": 0\.5/],
    ["model", { modelName: "huge" }, { part: "model" }, /- scripted\/large\n\+ scripted\/huge/],
    ["structured output", { output: z.object({ answer: z.string() }) }, { part: "response format" }, /json_schema/],
  ])("a changed %s is found", async (_what, after, found, diff) => {
    const result = divergence(await replayed({}, after));
    expect(result).toMatchObject({ ...found, divergedAt: { agentName: "lead", turn: 1, step: 1 } });
    expect(result.diff).toMatch(diff);
  });

  it("a renamed subagent is found as a tool, and a missing agent by its name", async () => {
    expect(divergence(await replayed({}, { readerName: "scout" }))).toMatchObject({ part: "tools" });
    const stores = await played(team());
    const other = defineAgent({ name: "other", model: "offline" });
    const result = divergence(await replay({ stores, agentId: "desk" }, { agents: other }));
    expect(result).toMatchObject({ part: "agent", expected: "lead", got: "other", divergedAt: { turn: 1, step: 0 } });
  });

  it("a changed rule for approvals is found at its call", async () => {
    const result = divergence(await replayed({}, { needsApproval: true }));
    expect(result).toMatchObject({ part: "tool call", divergedAt: { turn: 1, step: 1 } });
    expect(result.diff).toContain('"needsApproval": true');
  });

  it("limits change no request; they are named", async () => {
    expect(await replayed({}, { maxSteps: 20 })).toMatchObject({
      isEqual: true,
      changed: ["lead: limits", "reader: limits"],
    });
  });

  it("an answer that no longer fits its schema is found", async () => {
    const before = { output: z.object({ answer: z.string() }) };
    expect(await replayed(before, before)).toMatchObject({ isEqual: true });
    const refined = z.object({ answer: z.string() }).refine(() => false, "never");
    expect(divergence(await replayed(before, { output: refined }))).toMatchObject({
      part: "output",
      divergedAt: { turn: 1, step: 3 },
    });
  });
});

const adding = (text: string): Hooks => ({
  beforeLlm: async (draft, run) => {
    if (run.step === 2) draft.add({ role: "user", content: text });
  },
});

const asking = (question: string): Hooks => ({
  afterUserInput: async (draft, run) => {
    const { content } = await run.generate({ messages: [{ role: "user", content: question }] });
    draft.add({ role: "user", content: `asked: ${content}` });
  },
});

describe("hooks", () => {
  it("run again, and a difference is found where it takes effect", async () => {
    expect(await replayed({ hooks: adding("note") }, { hooks: adding("note") })).toMatchObject({
      isEqual: true,
      hooks: 10,
    });
    const result = divergence(await replayed({ hooks: adding("note") }, { hooks: adding("other") }));
    expect(result).toMatchObject({ part: "hooks", divergedAt: { turn: 1, step: 2 } });
    expect(result.diff).toMatch(/-.*note[^]*\+.*other/);
  });

  it("their recorded effects count when they do not run", async () => {
    const result = await replayed({ hooks: adding("note") }, { hooks: adding("other") }, "recorded");
    expect(result).toMatchObject({ isEqual: true, hooks: 0, notCompared: { hooks: 10 } });
  });

  it("a missing or additional hook is found at the start of the turn", async () => {
    expect(divergence(await replayed({}, { hooks: adding("note") }))).toMatchObject({
      part: "hooks",
      divergedAt: { turn: 1, step: 0 },
    });
  });

  it("answers of generate() are the recorded ones; another question is found", async () => {
    expect(await replayed({ hooks: asking("one?") }, { hooks: asking("one?") })).toMatchObject({ isEqual: true });
    expect(divergence(await replayed({ hooks: asking("one?") }, { hooks: asking("two?") }))).toMatchObject({
      part: "generate",
      divergedAt: { turn: 1, step: 1 },
    });
  });

  it("one that throws or never ends is a difference with its reason", async () => {
    const quiet: Hooks = { afterUserInput: () => undefined };
    const broken: Hooks = {
      afterUserInput: () => {
        throw new Error("it broke");
      },
    };
    expect(divergence(await replayed({ hooks: quiet }, { hooks: broken })).diff).toContain("it broke");
    const stores = await played(team({ hooks: quiet }));
    const endless: Hooks = { afterUserInput: () => new Promise(() => undefined) };
    const options = { agents: team({ hooks: endless }), timeoutMs: 1 };
    expect(divergence(await replay({ stores, agentId: "desk" }, options)).diff).toContain("did not end within 1 ms");
  });
});

const chatty = (words: string): AgentDefinition =>
  defineAgent({
    name: "lead",
    model: scriptedModel(({ messages }) => (messages.length > 4 ? "long" : "short")),
    maxMessages: 4,
    autoCompact: { strategy: summarize({ instructions: words }), keep: 2 },
  });

describe("compaction", () => {
  it("is repeated with the recorded summary; another question for it is found", async () => {
    const stores = await played([chatty("Sum up.")], 5);
    expect(await replay({ stores, agentId: "desk" }, { agents: chatty("Sum up.") })).toMatchObject({
      isEqual: true,
      turns: 5,
    });
    expect(divergence(await replay({ stores, agentId: "desk" }, { agents: chatty("Other.") })).part).toMatch(
      /generate|compaction/,
    );
  });
});

describe("wrong values", () => {
  it.each([
    ["agents", (value: unknown) => ({ agents: value })],
    ["hooks", (value: unknown) => ({ agents: team(), hooks: value })],
    ["timeoutMs", (value: unknown) => ({ agents: team(), timeoutMs: value })],
  ] as const)("%s is refused with what it takes", async (name, options) => {
    const stores = await played(team(), 1);
    const taken: unknown[] = [];
    for (const value of [...classicValues(), ...anyValues(20)]) {
      if (await isTaken(name, () => replay({ stores, agentId: "desk" }, options(value) as never))) taken.push(value);
    }
    expect(taken.filter((value) => value !== undefined)).toEqual(
      name === "timeoutMs" ? [5] : name === "agents" ? [[]] : [],
    );
  });

  it("a run that is none is refused", async () => {
    for (const value of [...classicValues(), ...anyValues(20)]) {
      if (typeof value === "string" && value !== "") continue;
      expect(await isTaken("replay()", () => replay(value as never, { agents: team() }))).toBe(false);
    }
    await expect(replay("nonsense", { agents: team() })).rejects.toMatchObject({ code: "invalid_input" });
    await expect(
      replay({ stores: memoryStores(), agentId: "x", more: 1 } as never, { agents: team() }),
    ).rejects.toThrow("more");
    await expect(replay({ stores: {} as never, agentId: "x" }, { agents: team() })).rejects.toThrow("memoryStores()");
  });
});
