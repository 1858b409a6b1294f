import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import {
  type AgentDefinition,
  createRuntime,
  defineAgent,
  defineTool,
  type Runtime,
  subagent,
} from "../../src/index.ts";
import { Feed } from "../../src/inspector/index.ts";
import { lostAgents, nothingLost } from "../../src/inspector/run-model/lost-agents.ts";
import { RunLog, type RunRow } from "../../src/inspector/run-model/run-log.ts";
import { RunMoments } from "../../src/inspector/run-model/run-moments.ts";
import { runSummary } from "../../src/inspector/run-model/run-summary.ts";
import type { SummarySource } from "../../src/inspector/run-model/summary-facts.ts";
import { Timeline } from "../../src/inspector/run-model/timeline.ts";
import { scriptedModel } from "../../src/testing/index.ts";

const price = { inputPerMillion: 2, outputPerMillion: 10, cachedInputPerMillion: 1 };
const usage = { inputTokens: 1_000, outputTokens: 100, cachedInputTokens: 400, reasoningTokens: 20 };

/** The folds of a run in its stored state. */
async function stored({ stores, tenant }: Runtime, runId = "desk"): Promise<SummarySource> {
  const feed = new Feed();
  feed.add({ stores, tenant });
  const { agents } = await feed.head(runId);
  const log = new RunLog();
  log.addAgents(agents);
  log.append((await feed.rows(runId, 0)) as unknown as readonly RunRow[]);
  const timeline = new Timeline(log);
  timeline.update();
  const moment = new RunMoments(log).at(log.length);
  return { log, timeline, moment, until: log.endedAt, lost: nothingLost, task: "" };
}

async function played(definition: AgentDefinition): Promise<Runtime> {
  const runtime = await createRuntime({ agents: [definition] });
  onTestFinished(() => runtime.shutdown());
  const agent = await runtime.agent(definition.name, { agentId: "desk" });
  await agent.start();
  await agent.executeTurn("Close the month.").result.catch(() => undefined);
  return runtime;
}

const pay = defineTool({
  name: "pay",
  description: "Pays.",
  parameters: z.object({ euros: z.number() }),
  effect: "once",
  needsApproval: true,
  execute: () => "paid",
});

/** A lead whose reader costs more. */
function team(): AgentDefinition {
  const reader = defineAgent({
    name: "reader",
    price,
    model: scriptedModel({ text: "read", usage: { ...usage, inputTokens: 9_000 } }),
  });
  return defineAgent({
    name: "lead",
    price,
    tools: [subagent(reader)],
    model: scriptedModel([
      { toolCalls: [{ name: "reader", arguments: { input: "this" } }], usage },
      { text: "done", usage },
    ]),
  });
}

describe("the summary of a run", () => {
  test("contains the outcome, the spending and the slow parts, each with its location", async () => {
    const source = await stored(await played(team()));
    const { answers, sentences, byModel, byAgent, isOpen } = runSummary({ ...source, task: "Close the month." });
    expect(isOpen).toBe(false);
    expect(answers.map(({ question }) => question)).toEqual(["Why it stopped", "Who spent it", "What was slow"]);
    const [why, who, slow] = answers;
    expect(why?.facts).toMatchObject([{ text: expect.stringMatching(/^lead: turn 1 completed after 2 steps, at /) }]);
    const at = why?.facts[0]?.place?.at ?? "";
    expect(source.log.addressOf(source.log.length)).toBe(at);
    expect(who?.facts[0]?.text).toMatch(/^reader ~\w+ by its own calls: \$0\.\d+ of \$0\.\d+, \d\d %$/);
    expect(who?.facts[0]?.place).toMatchObject({ view: "budgets", agent: byAgent[0]?.agentId });
    expect(who?.facts.find(({ text }) => text.startsWith("The dearest: model call"))?.place?.span).toMatch(/^\d+/);
    expect(slow?.facts[0]?.text).toMatch(/^model call .+: \d+ ms, (< )?\d+ %$/);
    expect(slow?.facts.at(-1)?.text).toMatch(/^In all .+ of work, 0 ms waiting for people, .+ idle$/);
    expect(sentences).toEqual([
      "Task: Close the month.",
      expect.stringMatching(/^2 agents \(lead, reader\) made 2 turns, 3 model calls and 1 tool call in /),
      "Nothing failed.",
      expect.stringMatching(/^Cost: \$0\.\d+, for 11\.0k input tokens, 11 % of it cached, and 300 output tokens\.$/),
    ]);
    expect(byModel).toMatchObject([["scripted", { calls: 3, cachedInputTokens: 1_200, reasoningTokens: 60 }]]);
    expect(byAgent.map(({ name, use }) => [name, use.inputTokens])).toEqual([
      ["reader", 9_000],
      ["lead", 2_000],
    ]);
  });

  test("adds up to the accounts", async () => {
    const runtime = await played(team());
    const { total, byAgent } = runSummary(await stored(runtime));
    const [row] = await rowsOf(runtime);
    expect(total).toMatchObject({ costMicros: row?.costMicros, calls: row?.calls });
    const uses = (row?.spending ?? []).map(({ name, use }) => [name, use] as const);
    expect(new Map(uses)).toEqual(new Map(byAgent.map(({ name, use }) => [name, use])));
  });

  test("names the limit, the account and the amounts that stopped it", async () => {
    const runtime = await played(
      defineAgent({
        name: "lead",
        budget: { maxTokens: 3_000, maxSteps: 10 },
        tools: [{ ...pay, needsApproval: false }],
        model: scriptedModel(() => ({
          toolCalls: [{ name: "pay", arguments: { euros: 1 } }],
          usage: { inputTokens: 1_900, outputTokens: 1_000 },
        })),
      }),
    );
    const [why] = runSummary(await stored(runtime)).answers;
    expect(why?.question).toBe("Why it stopped");
    expect(why?.facts[0]?.text).toMatch(/: token_limit, lead, this turn: .* of 3,000 tokens/);
    expect(why?.facts[0]?.place).toMatchObject({ view: "budgets", agent: "desk" });
  });

  test("names the error of a failed run, and what failed last", async () => {
    const runtime = await played(
      defineAgent({
        name: "lead",
        model: scriptedModel(() => {
          throw new Error("The model broke down.");
        }),
      }),
    );
    const { answers, sentences } = runSummary(await stored(runtime));
    expect(answers[0]?.facts.map(({ text }) => text)).toEqual([
      expect.stringMatching(/^lead: turn 1 failed after .*: error, .*The model broke down\./),
      expect.stringMatching(/^What failed last: model call scripted: .* of lead$/),
    ]);
    expect(sentences.join(" ")).toMatch(/1 agent, \d model calls? failed/);
  });

  test("of a run in progress names what it waits for, also at its earlier rows", async () => {
    const runtime = await createRuntime({
      agents: [
        defineAgent({
          name: "clerk",
          tools: [pay],
          model: scriptedModel([{ toolCalls: [{ name: "pay", arguments: { euros: 60 } }], usage }, "Paid."]),
        }),
      ],
    });
    onTestFinished(() => runtime.shutdown());
    const agent = await runtime.agent("clerk", { agentId: "desk" });
    await agent.start();
    const turn = agent.executeTurn("Pay.");
    for await (const event of turn) if (event.type === "request.opened") break;
    const open = await stored(runtime);
    const later = { ...open, until: open.until + 60_000 };
    const { answers, sentences, isOpen } = runSummary(later);
    expect(isOpen).toBe(true);
    expect(answers[0]).toEqual({
      question: "What it waits for",
      facts: [
        {
          text: expect.stringMatching(/^clerk is waiting for a person: approval of pay, for 1 min/),
          place: { view: "requests", agent: "desk", at: null, span: null },
        },
      ],
    });
    expect(answers[1]?.facts.map(({ text }) => text)).toEqual([
      "clerk by its own calls: 1.10k of 1.10k tokens, 100 %",
      "scripted: 1.10k of 1.10k tokens, 100 %",
      "The dearest: model call scripted of clerk, 1.10k tokens",
      "1 of 1 call had no price and count as nothing",
    ]);
    expect(answers[2]?.facts.at(-1)?.text).toMatch(/ 1 min waiting for people, /);
    expect(sentences).toContain("Requests to people: 1 open.");
    const [request] = await runtime.requests();
    await runtime.decide(request?.requestId ?? "", { verdict: "approved", by: "mara" });
    await turn.result;
    const over = await stored(runtime);
    expect(runSummary(over).sentences).toContain("Requests to people: 1 approved by mara.");
    const past = { ...over, moment: new RunMoments(over.log).at(open.log.length), until: later.until };
    expect(runSummary(past).answers[0]).toEqual(answers[0]);
    expect(runSummary(past).sentences).toEqual(sentences);
  });

  test("of a run whose process has died names the process and its last heartbeat", async () => {
    const answer = Promise.withResolvers<void>();
    const runtime = await createRuntime({
      agents: [defineAgent({ name: "clerk", model: scriptedModel({ text: "Seen.", delayUntil: answer.promise }) })],
    });
    onTestFinished(() => runtime.shutdown());
    onTestFinished(() => answer.resolve());
    const agent = await runtime.agent("clerk", { agentId: "desk" });
    await agent.start();
    const turn = agent.executeTurn("Look.");
    turn.result.catch(() => undefined);
    for await (const event of turn) if (event.type === "turn.started") break;
    await expect.poll(async () => (await stored(runtime)).moment.agents[0]?.phase).toBe("thinking");
    const source = await stored(runtime);
    await expect
      .poll(async () => runSummary(await stored(runtime)).answers[0]?.facts[0]?.text)
      .toMatch(/^clerk is thinking: scripted, for /);
    const process = {
      processId: "p",
      pid: 42,
      isHere: true,
      host: null,
      startedAt: null,
      state: "dead",
      seenAt: 0,
    } as const;
    const owners = { processes: new Map([["p", process]]), ofAgents: new Map([["desk", "p"]]) };
    const lost = lostAgents(source.log.agents, source.moment.agents, owners);
    const { answers, isOpen } = runSummary({ ...source, lost });
    expect(isOpen).toBe(true);
    expect(answers[0]?.question).toBe("Why it does not go on");
    expect(answers[0]?.facts[0]?.text).toBe("clerk is interrupted: process 42 is dead");
  });

  test("is the same from a feed", async () => {
    const runtime = await played(team());
    const feed = new Feed();
    feed.add({ stores: runtime.stores, tenant: runtime.tenant, runtime });
    expect(await feed.summary("desk")).toEqual(runSummary({ ...(await stored(runtime)), task: "Close the month." }));
  });
});

async function rowsOf({ stores, tenant }: Runtime) {
  const feed = new Feed();
  feed.add({ stores, tenant });
  return (await feed.runs({})).items;
}
