import { type AgentDefinition, type AgentOptions, defineAgent, type Runtime, type Turn } from "../../src/index.ts";
import type { Entry } from "../../src/state/index.ts";
import { type ModelScript, scriptedModel } from "../../src/testing/index.ts";
import { elapse } from "../support/journal-probes.ts";
import type { Stage, StagedOptions } from "../support/runtimes.ts";
import { calling, createGate, type Gate } from "../support/turn-probes.ts";
import { held, look } from "./scenario-tools.ts";

/** A program of real turns whose journals are checked afterwards. Its root agent is `desk`. */
export interface Scenario {
  readonly name: string;
  /** Entries, in the form of `labelOf`, that the journals of its tree must contain to match the name. */
  readonly shows: readonly string[];
  readonly run: (stage: Stage, options: Pick<StagedOptions, "onInspect">) => Promise<Runtime>;
}

/** `intent.refused mustWait`, `tool.settled denied`, `turn.ended steps_limit`, or just the type. */
export function labelOf(entry: Entry): string {
  switch (entry.type) {
    case "intent.refused":
      return `${entry.type} ${entry.reason}`;
    case "turn.ended":
      return `${entry.type} ${entry.stopReason}`;
    case "hook.applied":
      return `${entry.type} ${entry.hook}`;
    case "hooks.settled":
      return `${entry.type} ${entry.phase}`;
    case "request.opened":
      return `${entry.type} ${entry.kind}`;
    case "request.decided":
      return `${entry.type} ${entry.verdict}`;
    case "output.checked":
      return `${entry.type} ${entry.valid ? "fits" : "misfit"}`;
    default:
      return "outcome" in entry ? `${entry.type} ${entry.outcome}` : entry.type;
  }
}

export function desk(script: ModelScript, options: Partial<AgentOptions> = {}): AgentDefinition {
  return defineAgent({ tools: [look], ...options, name: "desk", model: scriptedModel(script) });
}

/** Opens an agent of the definition, runs one turn for each prompt, and advances the clock while it waits. */
export function turns(
  definition: () => AgentDefinition,
  prompts: readonly (string | null)[] = ["go"],
): Scenario["run"] {
  return async (stage, options) => {
    const runtime = await stage.open({ ...options, agents: [definition()] });
    const agent = await runtime.agent("desk", { agentId: "desk" });
    await agent.start();
    for (const prompt of prompts) await elapse(stage.clock, agent.executeTurn(prompt).result);
    return runtime;
  };
}

export function reader(script: ModelScript, options: Partial<AgentOptions> = {}): AgentDefinition {
  return defineAgent({ ...options, name: "reader", model: scriptedModel(script) });
}

export const askReader = (input: string) => ({ name: "reader", arguments: { input } });

/** Handles a turn that waits for a person. Called each time the turn starts to wait. */
export type Act = (runtime: Runtime, requestIds: readonly string[], times: number) => Promise<unknown>;

/** Runs one turn, and calls the handler each time the turn waits for a person. */
export function waiting(
  definition: () => AgentDefinition,
  act: Act,
  also: Pick<StagedOptions, "resolveAuth"> = {},
): Scenario["run"] {
  return async (stage, options) => {
    const runtime = await stage.open({ ...options, ...also, agents: [definition()] });
    const agent = await runtime.agent("desk", { agentId: "desk" });
    await agent.start();
    const turnId = await agent.executeTurn("go", { auth: { actorId: "ann" } }).id;
    await decideAll(stage, runtime, () => agent.turn(turnId), act);
    return runtime;
  };
}

async function decideAll(stage: Stage, runtime: Runtime, turn: () => Turn, act: Act): Promise<void> {
  for (let times = 1; times < 20; times += 1) {
    const rest = await elapse(stage.clock, turn().settled);
    if (rest.status !== "waiting" || rest.reason !== "request") return;
    await act(
      runtime,
      rest.requests.map(({ requestId }) => requestId),
      times,
    );
  }
  throw new Error("the turn does not stop waiting");
}

/** Runs a turn until it waits at the gate, and then calls the handler. */
export async function interrupted(
  stage: Stage,
  options: Pick<StagedOptions, "onInspect">,
  act: (gate: Gate<string>, runtime: Runtime) => Promise<void>,
  definitionOf: (gate: Gate<string>) => AgentDefinition = (gate) =>
    desk([calling("held", "look"), "done"], { tools: [held(gate), look] }),
): Promise<Runtime> {
  const gate = createGate<string>();
  const runtime = await stage.open({ ...options, agents: [definitionOf(gate)] });
  const agent = await runtime.agent("desk", { agentId: "desk" });
  await agent.start();
  const turn = agent.executeTurn("go");
  await gate.reached();
  await act(gate, runtime);
  await elapse(stage.clock, turn.result);
  return runtime;
}
