import {
  type Agent,
  askUser,
  defineAgent,
  type Runtime,
  subagent,
  textOf,
  TroupeError,
  type Turn,
} from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { loopTurns } from "./journal-probes.ts";
import { asks } from "./leads.ts";
import type { Stage } from "./runtimes.ts";
import { calling, createGate, type Gate } from "./turn-probes.ts";

/** Long enough for everything that happens by itself. */
const aWhile = 15;

/** An agent in every state that pauses and aborts can meet, and all accepted turns. */
export interface MarkScene {
  readonly stage: Stage;
  readonly runtime: Runtime;
  readonly agent: Agent;
  readonly turns: Turn[];
  /** The gate that holds the models back. */
  readonly gate: Gate<string>;
  readonly signals: AbortController[];
}

/** `lead` follows its input: it thinks, asks a person, or has a child think for it, in its turn or in the background. */
export async function openMarkScene(stage: Stage, agentId: string): Promise<MarkScene> {
  const gate = createGate<string>();
  const thinks = scriptedModel((_request, { signal }) => gate.pass(signal));
  const child = defineAgent({ name: "child", model: thinks });
  const aide = defineAgent({ name: "aide", model: thinks });
  const model = scriptedModel(async ({ messages }, { signal }) => {
    const last = messages.at(-1);
    const text = textOf(last?.content ?? "");
    if (last?.role === "tool" || text === "again") return "done";
    if (text === "ask") return calling({ name: "ask_user", arguments: { question: "Shall I?" } });
    if (text === "child" || text === "aide") return calling(asks(text, "go"));
    if (text === "fail") return { error: new Error("it broke") };
    return await gate.pass(signal);
  });
  const tools = [askUser(), subagent(child), subagent(aide, { mode: "background" })];
  const runtime = await stage.open({ agents: [defineAgent({ name: "lead", model, tools }), child, aide] });
  const agent = await runtime.agent("lead", { agentId });
  await agent.start();
  return { stage, runtime, agent, turns: [], gate, signals: [] };
}

type Play = (scene: MarkScene) => Promise<void>;

const gives =
  (input: string): Play =>
  async (scene) => {
    const controller = new AbortController();
    const turn = scene.agent.executeTurn(input, { ifBusy: "queue", signal: controller.signal });
    await turn.id;
    scene.signals.push(controller);
    scene.turns.push(turn);
    await loopTurns(aWhile);
  };

const pauses: Play = async ({ agent }) => {
  await held(agent.pause());
};

/** A pause waits for calls in flight; the scene continues meanwhile. */
async function held(work: Promise<unknown>): Promise<void> {
  work.catch(() => undefined);
  await loopTurns(aWhile);
}

/** Run one after the other before a command. */
export const situations: Readonly<Record<string, readonly Play[]>> = {
  idle: [],
  paused: [pauses],
  "paused, given a turn": [pauses, gives("think")],
  "paused, given a turn and another one": [pauses, gives("think"), gives("again")],
  "at work": [gives("think")],
  "at work, another turn in line": [gives("think"), gives("again")],
  "at work, to be paused": [gives("think"), pauses],
  "waiting for a person": [gives("ask")],
  "waiting for a person, paused": [gives("ask"), pauses],
  "waiting for a child": [gives("child")],
  "waiting for a child, paused": [gives("child"), pauses],
  "waiting for a child that is paused": [gives("child"), (scene) => ofChildren(scene, (child) => child.pause())],
  "paused with a child in the background": [gives("aide"), pauses],
  "paused with a child in the background that was given a turn": [
    gives("aide"),
    async ({ gate }) => gate.open("done"),
    async () => await loopTurns(aWhile),
    pauses,
    (scene) =>
      ofChildren(scene, async (child) => {
        const turn = child.executeTurn("think", { ifBusy: "queue" });
        await turn.id;
        scene.turns.push(turn);
      }),
  ],
  "failed, paused": [gives("fail"), pauses],
};

async function ofChildren({ runtime, agent }: MarkScene, work: (child: Agent) => Promise<unknown>): Promise<void> {
  for (const { agentId, depth } of await runtime.list({ rootAgentId: agent.agentId })) {
    if (depth > 0) await held(work(await runtime.find(agentId)));
  }
}

const isRefused = (error: unknown): boolean => error instanceof TroupeError && error.family !== "defect";

/** A command may be refused because of the agent's state; it must not fail otherwise. */
async function tried(work: () => Promise<unknown>): Promise<void> {
  const done = work().catch((error: unknown) => {
    if (!isRefused(error)) throw error;
  });
  await Promise.race([done, loopTurns(aWhile)]);
}

const executes =
  (ifBusy: "refuse" | "queue" | "supersede"): Play =>
  async ({ agent, turns }) => {
    const turn = agent.executeTurn("again", { ifBusy });
    await tried(async () => {
      await turn.id;
      turns.push(turn);
    });
    await loopTurns(aWhile);
  };

export const commands: Readonly<Record<string, Play>> = {
  pause: ({ agent }) => tried(() => agent.pause()),
  "pause now": ({ agent }) => tried(() => agent.pause({ now: true })),
  resume: ({ agent }) => tried(() => agent.resume()),
  "abort by the agent": ({ agent }) => tried(() => agent.abort()),
  "abort by the turn": async ({ turns }) => tried(async () => await turns.at(0)?.abort()),
  "abort of the turn in line": async ({ turns }) => tried(async () => await turns.at(-1)?.abort()),
  "abort by signal": async ({ signals }) => {
    for (const signal of signals) signal.abort(new Error("enough"));
  },
  "abort of the children": (scene) => ofChildren(scene, (child) => child.abort()),
  "a turn": executes("refuse"),
  "a turn in line": executes("queue"),
  supersede: executes("supersede"),
  clear: ({ agent }) => tried(() => agent.clear()),
  "shutdown and start": ({ agent }) =>
    tried(async () => {
      await agent.shutdown();
      await agent.start();
    }),
};

/** Releases everything that holds the agents: each turn must end, and each agent accept another one. Returns the faults. */
export async function stuckIn({ stage, runtime, agent, turns, gate }: MarkScene): Promise<string[]> {
  gate.open("done");
  const over = new Set<string>();
  for (const turn of turns) {
    const id = await turn.id;
    turn.result.then(
      () => over.add(id),
      (error: unknown) => over.add(`${id}: ${String(error)}`),
    );
  }
  const ids = await Promise.all(turns.map((turn) => turn.id));
  for (let round = 0; round < 60 && !ids.every((id) => over.has(id)); round += 1) {
    for (const { agentId } of await runtime.list({ rootAgentId: agent.agentId })) {
      const one = await runtime.find(agentId);
      // A child is reached only in its process; the root's handle works everywhere.
      if (agentId === agent.agentId) await agent.resume();
      else await one.resume();
    }
    for (const { requestId } of await runtime.requests({ rootAgentId: agent.agentId, status: "open" })) {
      await tried(() => runtime.decide(requestId, { verdict: "answered", result: "yes" }));
    }
    await loopTurns(aWhile);
    stage.clock.advance(50);
  }
  const stuck = ids.filter((id) => !over.has(id)).map((id) => `${id} has not ended`);
  if (stuck.length > 0) return stuck;
  await agent.resume();
  const next = agent.executeTurn("again", { ifBusy: "queue" });
  const { status } = await Promise.race([next.result, loopTurns(300).then(() => ({ status: "stuck" }))]);
  if (status !== "completed") stuck.push(`the next turn is ${status}`);
  // Background children end a little later.
  await loopTurns(2 * aWhile);
  for (const { agentId, pause, abort, openTurnId } of await runtime.list({ rootAgentId: agent.agentId })) {
    if (pause || abort || openTurnId) stuck.push(`${agentId}: ${JSON.stringify({ pause, abort, openTurnId })}`);
    const inbox = await stage.look().inbox({ tenant: "default", agentId });
    if (inbox.length > 0) stuck.push(`${agentId}: ${inbox.map(({ key }) => key).join()} in its inbox`);
  }
  if (agent.state.status !== "ready") stuck.push(`the agent is ${agent.state.status}`);
  return stuck;
}
