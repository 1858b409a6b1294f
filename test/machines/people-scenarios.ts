import { type Hooks, subagent } from "../../src/index.ts";
import { elapse } from "../support/journal-probes.ts";
import { calling } from "../support/turn-probes.ts";
import { askReader, desk, reader, type Scenario, turns, waiting } from "./scenario.ts";
import { ask, browse, login, look, pay } from "./scenario-tools.ts";

const question = { name: "ask_user", arguments: { question: "Which?" } };
const reviewing: Hooks = {
  afterEachTool: () => undefined,
  onError: () => undefined,
  afterTools: (draft) => draft.add({ role: "user", content: "seen" }),
};

const verdicts: readonly Scenario[] = [
  {
    name: "an approval, an edit and a rejection, together with a tool call",
    shows: [
      ...["approved", "edited", "rejected"].map((verdict) => `request.decided ${verdict}`),
      "turn.waiting",
      "tool.settled denied",
      "call.reviewed",
      "turn.ended completed",
    ],
    run: waiting(
      () => desk([calling("pay", "look", "pay", "pay"), "done"], { tools: [pay, look], hooks: reviewing }),
      async (runtime, [first = "", second = "", third = ""]) => {
        await runtime.decide(third, { verdict: "rejected", by: "ann", reason: "too much" });
        await runtime.decide(second, { verdict: "edited", by: "ann", arguments: { amount: 2 } });
        await runtime.decide(first, { verdict: "approved", by: "ann" });
      },
    ),
  },
  {
    name: "approvals one at a time",
    shows: ["request.decided approved", "turn.ended completed"],
    run: waiting(
      () => desk([calling("pay", "pay", "pay"), "done"], { tools: [pay] }),
      async (runtime, open) => await runtime.decide(open.at(-1) ?? "", { verdict: "approved" }),
    ),
  },
  {
    name: "a question, a client tool, and a call that the caller rejects",
    shows: ["request.opened question", "request.opened client", "request.decided answered", "request.decided rejected"],
    run: waiting(
      () => desk([calling(question, "browse", "browse"), "done"], { tools: [ask, browse] }),
      async (runtime, [first = "", second = "", third = ""]) => {
        await runtime.decide(first, { verdict: "answered", result: "the blue one" });
        await runtime.decide(second, { verdict: "answered", result: { pages: 3 }, isError: true });
        await runtime.decide(third, { verdict: "rejected" });
      },
    ),
  },
  {
    name: "requests that expire",
    shows: ["request.decided expired", "tool.settled denied", "turn.ended completed"],
    run: turns(() => desk([calling("pay", "look"), "done"], { tools: [pay, look] })),
  },
  {
    name: "credentials after the approval",
    shows: ["request.opened approval", "request.opened auth", "request.decided provided", "tool.settled success"],
    run: waiting(
      () => desk([calling("login"), "done"], { tools: [login] }),
      async (runtime, [open = ""], times) => {
        if (times === 1) await runtime.decide(open, { verdict: "approved", by: "bob" });
        else await (await runtime.find("desk")).resume({ auth: { actorId: "ann", credentials: "secret" } });
      },
    ),
  },
  {
    name: "credentials from resolveAuth",
    shows: ["request.opened approval", "tool.settled success"],
    run: waiting(
      () => desk([calling("login"), "done"], { tools: [login] }),
      async (runtime, [open = ""]) => await runtime.decide(open, { verdict: "approved" }),
      { resolveAuth: ({ actorId }) => ({ actorId, credentials: "secret" }) },
    ),
  },
  {
    name: "an approval in a subagent and one in its parent",
    shows: ["child.spawned", "request.decided approved", "child.ended completed"],
    run: waiting(
      () => {
        const child = reader([calling("pay"), "paid"], { tools: [pay] });
        return desk([calling(askReader("a"), "pay"), "done"], { tools: [pay, subagent(child)] });
      },
      async (runtime, [open = ""]) => await runtime.decide(open, { verdict: "approved" }),
    ),
  },
];

const interrupting: readonly Scenario[] = [
  {
    name: "an abort while the turn waits for a person",
    shows: ["request.opened approval", "tool.settled interrupted", "turn.ended user_requested"],
    run: waiting(
      () => desk([calling("pay", "look", "browse")], { tools: [pay, look, browse], hooks: reviewing }),
      async (runtime) => await (await runtime.find("desk")).abort(),
    ),
  },
  {
    name: "a new message that supersedes a waiting turn",
    shows: ["request.opened question", "tool.settled interrupted", "turn.ended user_requested", "turn.ended completed"],
    run: waiting(
      () => desk([calling(question), "the new one"], { tools: [ask] }),
      async (runtime) => {
        const agent = await runtime.find("desk");
        await agent.executeTurn("never mind", { ifBusy: "supersede" }).result;
      },
    ),
  },
  {
    name: "a pause while the turn waits for a person, with the decision during the pause",
    shows: ["agent.paused", "request.decided approved", "agent.resumed", "turn.ended completed"],
    run: async (stage, options) => {
      const definition = desk([calling("pay", "pay"), "done"], { tools: [pay] });
      const runtime = await stage.open({ ...options, agents: [definition] });
      const agent = await runtime.agent("desk", { agentId: "desk" });
      await agent.start();
      const turn = agent.executeTurn("go");
      const rest = await elapse(stage.clock, turn.settled);
      const [first = "", second = ""] =
        "requests" in rest ? rest.requests.map(({ requestId }) => requestId) : ([] as string[]);
      await elapse(stage.clock, agent.pause());
      await runtime.decide(first, { verdict: "approved" });
      await agent.resume();
      await runtime.decide(second, { verdict: "approved" });
      await elapse(stage.clock, turn.result);
      return runtime;
    },
  },
  {
    name: "a subagent that waits for a person, and an abort of the tree",
    shows: ["child.spawned", "request.opened approval", "turn.ended user_requested"],
    run: waiting(
      () => {
        const child = reader([calling("pay")], { tools: [pay] });
        return desk([calling(askReader("a"))], { tools: [subagent(child)] });
      },
      async (runtime) => await (await runtime.find("desk")).abort(),
    ),
  },
  {
    name: "hooks that deny calls that need an approval",
    shows: ["tool.settled denied", "turn.ended completed"],
    run: turns(() =>
      desk([calling("pay"), "done"], { tools: [pay], hooks: { beforeEachTool: (draft) => draft.deny("never") } }),
    ),
  },
];

export const peopleScenarios: readonly Scenario[] = [...verdicts, ...interrupting];
