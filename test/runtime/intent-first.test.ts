import { expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import {
  type AgentDefinition,
  askUser,
  clientTool,
  defineAgent,
  defineTool,
  type Hooks,
  type ModelRequest,
  type RunContext,
  subagent,
  summarize,
  textOf,
  type ToolDefinition,
} from "../../src/index.ts";
import { remoteAgent } from "../../src/remote/index.ts";
import type { EntryType } from "../../src/state/index.ts";
import { type ScriptedAnswer, scriptedModel } from "../../src/testing/index.ts";
import { CommitWatch } from "../support/commit-watch.ts";
import { elapse } from "../support/journal-probes.ts";
import { startRawServer } from "../support/raw-server.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling } from "../support/turn-probes.ts";

const nothing = z.object({});
type Traits = Partial<ToolDefinition<typeof nothing>> & { readonly act?: (run: RunContext) => unknown };

/** A tool whose code sees to its intent before anything else. */
function toolOf(watch: CommitWatch, name: string, { act = () => "done", ...traits }: Traits) {
  return defineTool({
    name,
    description: name,
    parameters: nothing,
    ...traits,
    execute(_args, run) {
      watch.starts(`tool ${name}`, "tool.started", (entry) => {
        return entry.type === "tool.started" && entry.callId === run.callId && entry.attempt === run.attempt;
      });
      return act(run);
    },
  });
}

/** A model whose intents are those of one agent. */
function modelOf(
  watch: CommitWatch,
  kind: string,
  { isOwn, script }: { isOwn: (agentId: string) => boolean; script: (request: ModelRequest) => ScriptedAnswer },
) {
  return scriptedModel((request) => {
    watch.startsNext(kind, ["model.requested", "generate.requested"], (_entry, agentId) => isOwn(agentId));
    return script(request);
  });
}

/** Hooks of every name. User code runs only when all that led to it is committed. */
function hooksOf(watch: CommitWatch): Hooks {
  const sees = (name: keyof Hooks, type: EntryType, step = 0) => {
    watch.starts(`hook ${name}`, type, (entry) => !("step" in entry) || entry.step >= step);
  };
  return {
    afterUserInput: () => sees("afterUserInput", "turn.started"),
    beforeLlm: (_draft, { step }) => sees("beforeLlm", step === 1 ? "turn.started" : "tool.settled", step - 1),
    afterLlm: (_draft, { step }) => sees("afterLlm", "model.responded", step),
    beforeTools: (_draft, { step }) => sees("beforeTools", "model.responded", step),
    beforeEachTool: (_draft, { step }) => sees("beforeEachTool", "model.responded", step),
    afterEachTool: (_draft, { step }) => sees("afterEachTool", "model.responded", step),
    onError: (_draft, { step }) => sees("onError", "model.responded", step),
    afterTools: (_draft, { step }) => sees("afterTools", "tool.settled", step),
    onComplete: (_draft, { step }) => sees("onComplete", "model.responded", step),
  };
}

const isSummary = ({ messages }: ModelRequest): boolean =>
  textOf(messages.at(-1)?.content ?? "").startsWith("<conversation>");

/** A first answer with these calls, then one without any. */
const once =
  (...calls: Parameters<typeof calling>) =>
  ({ messages }: ModelRequest): ScriptedAnswer =>
    messages.some(({ role }) => role === "tool") ? "the end" : calling(...calls);

const summarizing = (request: ModelRequest): ScriptedAnswer =>
  isSummary(request) ? "short" : once("look", "fails")(request);

const fail = (): never => {
  throw new Error("never");
};

const ofLead = (agentId: string): boolean => agentId === "lead";
const ofOthers = (agentId: string): boolean => agentId !== "lead";

const leading = (request: ModelRequest): ScriptedAnswer =>
  textOf(request.messages[0]?.content ?? "") === "what?"
    ? "that"
    : once(
        "spawner",
        { name: "helper", arguments: { input: "help" } },
        { name: "digger", arguments: { input: "dig" } },
      )(request);

describeRuntimes("no effect before its intent", (stage) => {
  /** An agent "lead" and what it is made of; its turn is played to the end, with help where it needs it. */
  async function play(
    watch: CommitWatch,
    options: Omit<Parameters<typeof defineAgent>[0], "name">,
    others: readonly AgentDefinition[] = [],
  ) {
    const lead = defineAgent({ name: "lead", ...options });
    const runtime = await stage().open({ agents: [lead, ...others], through: watch.through, random: () => 0.5 });
    runtime.subscribe((event) => {
      if (event.type === "request.opened") watch.shows(event.requestId);
    });
    const agent = await runtime.agent("lead", { agentId: "lead" });
    await agent.start();
    const turn = agent.executeTurn("go");
    for (;;) {
      const rest = await elapse(stage().clock, turn.settled);
      if (rest.status !== "waiting") break;
      const requests = await agent.requests();
      for (const { requestId, kind } of requests) {
        const yes = kind === "approval" ? { verdict: "approved" } : { verdict: "answered", result: "so" };
        await agent.decide(requestId, yes as Parameters<typeof agent.decide>[1]);
      }
    }
    expect(await turn.result).toMatchObject({ status: "completed", text: "the end" });
    return agent;
  }

  it("tools of every class and place, and what people are asked", async () => {
    const watch = new CommitWatch();
    let failures = 0;
    const flaky = (): string => {
      failures += 1;
      if (failures === 1) throw new Error("not now");
      return "done";
    };
    const tools = [
      toolOf(watch, "look", { effect: "none" }),
      toolOf(watch, "send", { effect: "keyed" }),
      toolOf(watch, "pay", { effect: "once" }),
      toolOf(watch, "slots", { effect: "none", concurrency: 1 }),
      toolOf(watch, "queued", { effect: "none", queue: "far" }),
      toolOf(watch, "approve", { effect: "none", needsApproval: true }),
      toolOf(watch, "flaky", { effect: "none", maxAttempts: 2, act: flaky }),
      clientTool({ name: "pick", description: "Picks.", parameters: nothing }),
      askUser(),
    ];
    const script = once("look", "look", "send", "pay", "slots", "queued", "approve", "flaky", "pick", {
      name: "ask_user",
      arguments: { question: "Why?" },
    });
    await play(watch, { model: modelOf(watch, "model", { isOwn: ofLead, script }), tools });
    expect(watch.faults).toEqual([]);
    expect(watch.kinds).toEqual([
      "model",
      "request",
      "tool approve",
      "tool flaky",
      "tool look",
      "tool pay",
      "tool queued",
      "tool send",
      "tool slots",
    ]);
  });

  it("subagents, in the foreground, in the background and spawned by code, and what code asks of a model", async () => {
    const watch = new CommitWatch();
    const childOf = (name: string) => {
      return defineAgent({
        name,
        hooks: {
          afterUserInput: (_draft, { agent }) => {
            watch.starts(
              `subagent ${name}`,
              "child.spawned",
              (entry) => "childId" in entry && entry.childId === agent.agentId,
            );
          },
        },
        model: modelOf(watch, "model of a child", { isOwn: ofOthers, script: () => "helped" }),
      });
    };
    const [helper, digger, spawned] = [childOf("helper"), childOf("digger"), childOf("spawned")];
    const act = async (run: RunContext): Promise<string> => {
      const answer = await run.generate({ messages: [{ role: "user", content: "what?" }] });
      const child = await run.spawn(spawned, "go", { key: "a" });
      return `${textOf(answer.content)} ${(await child.result).text}`;
    };
    await play(
      watch,
      {
        model: modelOf(watch, "model", { isOwn: ofLead, script: leading }),
        tools: [
          toolOf(watch, "spawner", { effect: "keyed", act }),
          subagent(helper, { description: "Helps." }),
          subagent(digger, { description: "Digs.", mode: "background" }),
        ],
      },
      [spawned],
    );
    expect(watch.faults).toEqual([]);
    expect(watch.kinds).toEqual([
      "model",
      "model of a child",
      "subagent digger",
      "subagent helper",
      "subagent spawned",
      "tool spawner",
    ]);
  });

  it("code of users at every place of a turn, and summaries", async () => {
    const watch = new CommitWatch();
    const agent = await play(watch, {
      model: modelOf(watch, "model", { isOwn: ofLead, script: summarizing }),
      tools: [toolOf(watch, "look", { effect: "none" }), toolOf(watch, "fails", { effect: "none", act: fail })],
      hooks: hooksOf(watch),
      maxMessages: 4,
      autoCompact: { strategy: summarize(), keep: 2 },
    });
    await elapse(stage().clock, agent.executeTurn("and now").result);
    expect(watch.faults).toEqual([]);
    expect(watch.kinds).toEqual(
      [...Object.keys(hooksOf(watch)).map((name) => `hook ${name}`), "model", "tool fails", "tool look"].toSorted(),
    );
  });

  it("agents of other programs", async () => {
    const watch = new CommitWatch();
    const server = await startRawServer((_request, response) => {
      watch.starts("remote agent", "tool.started", (entry) => entry.type === "tool.started" && entry.name === "far");
      response.writeHead(404).end();
    });
    onTestFinished(() => server.stop());
    const far = remoteAgent({ name: "far", description: "Far.", url: server.origin });
    const script = once({ name: "far", arguments: { input: "hello" } });
    await play(watch, { model: modelOf(watch, "model", { isOwn: ofLead, script }), tools: [far] });
    expect(watch.faults).toEqual([]);
    expect(watch.kinds).toEqual(["model", "remote agent"]);
  });
});
