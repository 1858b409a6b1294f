import { z } from "zod";
import {
  type AgentDefinition,
  AgentStopError,
  type AgentTool,
  askUser,
  defineAgent,
  defineTool,
  type EffectClass,
  type HookContext,
  type HookDrafts,
  type HookName,
  type Hooks,
  type LanguageModel,
  type Message,
  type ModelRequest,
  type RunContext,
  subagent,
  textOf,
  ToolNotStartedError,
} from "../../src/index.ts";
import { isLegal, promptHashOf } from "../../src/context/index.ts";
import { hookNames, rootOf } from "../../src/state/index.ts";
import { type ScriptedReply, scriptedModel } from "../../src/testing/index.ts";
import { fractionOf } from "../../src/testing/simulation/seeded-random.ts";
import { childKinds, deeds, type PlannedCall, type PlannedRound, type Program } from "./program.ts";
import { modelIntent } from "../../src/testing/simulation/reach.ts";
import { digestOf, type World } from "./world.ts";

/** The queue of the queued tools. */
export const TOOL_QUEUE = "programs";
/** Whole micro-dollars per token, so that nothing is rounded. */
const price = { inputPerMillion: 1, outputPerMillion: 4 };
const systemPrefix = "TURN ";
const sidePrefix = "SIDE ";
/** Error message of a hook that throws. */
export const HOOK_BROKE = "the hook broke";
const NAP_MS = 60;
const WAIT_SECONDS = 0.05;

/** The agent that plays a program. Programs with hooks have a different agent, so that others run without hooks. */
export function leadOf({ hooks }: Program): string {
  return hooks.length > 0 ? "hooked-lead" : "lead";
}

export function inputOf(rounds: readonly PlannedRound[]): string {
  return JSON.stringify(rounds);
}

/** All agents of the programs of one world. The actions of each are in its input. */
export function castOf(world: World): AgentDefinition[] {
  return ["", "hooked-"].flatMap((prefix) => {
    const shared = {
      model: modelOf(world),
      price,
      maxOutputTokens: 300,
      maxConsecutiveToolFailures: 50,
      instructions: ({ turnId }: { readonly turnId: string }) => `${systemPrefix}${turnId}`,
      ...(prefix === "" ? {} : { hooks: hooksOf(world) }),
    };
    const member = (name: string, below: AgentDefinition | undefined): AgentDefinition =>
      defineAgent({ ...shared, name: `${prefix}${name}`, tools: [...toolsOf(world, below), ...childrenOf(below)] });
    const aide = member("aide", undefined);
    const hand = member("hand", aide);
    return [member("lead", hand), hand, aide];
  });
}

function childrenOf(definition: AgentDefinition | undefined): AgentTool[] {
  if (!definition) return [];
  return [
    subagent(definition, { name: "helper" }),
    subagent(definition, { name: "thrifty", budget: { maxSteps: 2, maxTokens: 9_000, maxSeconds: 5 } }),
    subagent(definition, { name: "curbed", budget: { maxToolCalls: 1, maxTreeToolCalls: 2 } }),
    subagent(definition, { name: "single", policy: { maxConcurrent: 1, maxChildren: 2 } }),
    subagent(definition, { name: "scout", mode: "background" }),
    subagent(definition, { name: "errand", mode: "background", onEnd: "wake" }),
  ];
}

const parameters = z.object({ note: z.string(), does: z.enum(deeds) });
type Given = z.output<typeof parameters>;

function toolsOf(world: World, below: AgentDefinition | undefined): AgentTool[] {
  const declared = (name: string, effect: EffectClass) => ({
    name,
    description: "Does as it is told.",
    parameters,
    effect,
    execute: async ({ note, does }: Given, run: RunContext): Promise<unknown> => {
      await world.alive();
      if (does === "refuse") throw new ToolNotStartedError("it did not begin");
      const { callId, idempotencyKey: key, agent } = run;
      const root = agent.rootAgentId;
      const isGranted = await world.isGranted(agent.agentId, callId);
      await world.touch({ type: "attempt", root, at: world.clock.now(), callId, key, tool: name, note, isGranted });
      await world.pass(fractionOf(callId), run.signal);
      return await perform({ world, does, run, below });
    },
  });
  const reconcile = async (_given: unknown, { callId }: { readonly callId: string }) => {
    await world.alive();
    return world.wasAttempted(callId) ? { done: true as const, result: receipt(callId) } : { done: false as const };
  };
  return [
    defineTool(declared("look", "none")),
    defineTool({ ...declared("charge", "keyed"), maxAttempts: 2 }),
    defineTool(declared("send", "once")),
    defineTool({ ...declared("book", "once"), reconcile }),
    defineTool({ ...declared("look_queued", "none"), queue: TOOL_QUEUE }),
    defineTool({ ...declared("charge_queued", "keyed"), queue: TOOL_QUEUE, maxAttempts: 2 }),
    defineTool({ ...declared("send_queued", "once"), queue: TOOL_QUEUE }),
    defineTool({ ...declared("approve", "once"), needsApproval: true }),
    askUser(),
  ];
}

const REJECTED = 0.2;

/** Whether the person rejects the request. */
export function receivesRejection(callId: string): boolean {
  return fractionOf(`${callId} decided`) < REJECTED;
}

/** The result of a tool that took effect. */
export function receipt(callId: string): string {
  return `receipt of ${callId}`;
}

interface Scene {
  readonly world: World;
  readonly does: Given["does"];
  readonly run: RunContext;
  readonly below: AgentDefinition | undefined;
}

async function perform({ world, does, run, below }: Scene): Promise<unknown> {
  switch (does) {
    case "nap":
      await world.clock.sleep(NAP_MS, run.signal);
      await world.alive();
      return receipt(run.callId);
    case "fail":
      throw new Error("it broke");
    case "stop":
      throw new AgentStopError("enough");
    case "generate":
      await run.generate(sideCall(run.callId));
      return receipt(run.callId);
    case "artifact":
      await run.saveArtifact({ name: "notes", contentType: "text/plain", content: receipt(run.callId) });
      return receipt(run.callId);
    case "spawn":
      if (!below) return receipt(run.callId);
      return run.await(await run.spawn(below, inputOf([]), { key: "one" }), { prefix: `${receipt(run.callId)}: ` });
    default:
      return receipt(run.callId);
  }
}

function sideCall(run: string) {
  return { messages: [{ role: "user", content: `${sidePrefix}${run}` }], maxOutputTokens: 64 } as const;
}

function modelOf(world: World): LanguageModel {
  return scriptedModel(async (request, { signal }): Promise<ScriptedReply> => {
    await world.alive();
    const inputTokens = inputTokensOf(request);
    const [first] = request.messages;
    const said = textOf(first?.content ?? "");
    if (said.startsWith(sidePrefix)) {
      const run = said.slice(sidePrefix.length);
      world.note({ type: "side", root: rootOf(run.split("#")[0] ?? ""), run, inputTokens, outputTokens: 2 });
      await world.pass(fractionOf(run), signal);
      return { text: "noted", usage: { inputTokens, outputTokens: 2 } };
    }
    const turnId = said.slice(systemPrefix.length);
    const place = placeIn(turnId, request);
    const [agentId = ""] = turnId.split("#");
    const root = rootOf(agentId);
    const isGranted = await world.isGranted(agentId, modelIntent({ turnId, step: place.step }));
    const at = world.clock.now();
    await world.touch({ type: "asked", root, at, turnId, inputTokens, ...place, isGranted });
    await world.pass(fractionOf(`${turnId}:${place.step}`), signal);
    const reply = replyTo(turnId, place.step, request);
    const outputTokens = Math.ceil(JSON.stringify(reply).length / 6);
    world.note({ type: "answered", root, turnId, step: place.step, outputTokens });
    return { ...reply, usage: { inputTokens, outputTokens } };
  });
}

/**
 * The provider's token count of texts, calls and tools, without data that only the runtime has. Less than the reservation.
 */
function inputTokensOf({ messages, tools = [] }: ModelRequest): number {
  const told = messages.map((message) => {
    const calls = message.role === "assistant" ? (message.toolCalls ?? []) : [];
    return [textOf(message.content), ...calls.map(({ name, arguments: text }) => `${name} ${text}`)].join(" ");
  });
  return Math.ceil((told.join(" ").length + JSON.stringify(tools).length) / 6);
}

/** A request's position in its turn, and the parts of the turn in its prompt. */
function placeIn(turnId: string, { messages }: ModelRequest) {
  const ofTurn = (message: Message): boolean => message.id.startsWith(`${turnId}:`);
  const answers = messages.filter((message) => message.role === "assistant" && ofTurn(message));
  const told = messages.flatMap((message) => (message.role === "tool" && ofTurn(message) ? [message.callId] : []));
  const ids = messages.map(({ id }) => id);
  const twice = ids.find((id, index) => ids.indexOf(id) !== index);
  const fault = isLegal(messages) ?? (twice === undefined ? undefined : `message ${twice} comes twice`);
  // The prompt of a budget's last call ends with a note, which is not stored.
  const stored = messages.filter(({ id }) => id !== "last-call");
  return {
    step: answers.length + 1,
    ids: stored.slice(1).map(({ id }) => id),
    told,
    digest: digestOf(stored.slice(1)),
    // Copy the messages, so that values cached by message object are not used.
    promptHash: promptHashOf(structuredClone(stored) as readonly Message[]),
    fault,
  };
}

/** A deterministic model: the same position gets the same answer. */
function replyTo(turnId: string, step: number, { messages, toolChoice }: ModelRequest): ScriptedReply {
  const input = messages.find(({ id }) => id === `${turnId}:in`);
  const rounds = input === undefined ? [] : (JSON.parse(textOf(input.content)) as readonly PlannedRound[]);
  const round = rounds[step - 1];
  if (!round || round.length === 0 || toolChoice === "none") return { text: `DONE ${turnId}` };
  return { toolCalls: round.map((call, index) => wireCall(call, `${turnId}:${step}:${index}`, messages)) };
}

function wireCall(call: PlannedCall, note: string, messages: readonly Message[]) {
  if ("child" in call) return { name: call.child, arguments: { input: inputOf(call.rounds) } };
  if (call.tool === "ask_user") return { name: call.tool, arguments: { question: note } };
  if (call.tool !== "subagent_wait") return { name: call.tool, arguments: { note, does: call.does } };
  const started = messages.flatMap(({ role, content }) => {
    const [, id] = (role === "tool" && /^\{"agentId":"([^"]+)"/.exec(textOf(content))) || [];
    return id === undefined ? [] : [id];
  });
  const agentIds = started.length > 0 ? started : ["nobody"];
  return { name: call.tool, arguments: { agentIds, timeoutSeconds: WAIT_SECONDS } };
}

/** Names without a tool in an agent: an aide has no subagents. */
export const childNames: ReadonlySet<string> = new Set([...childKinds, "subagent_wait"]);

function hooksOf(world: World): Hooks {
  const hookAt = <Name extends HookName>(name: Name) => {
    return async (draft: HookDrafts[Name], run: HookContext): Promise<void> => {
      await world.alive();
      const { agentId } = run.agent;
      const planned = world.programOf(agentId)?.hooks ?? [];
      for (const { does } of planned.filter(({ hook, step }) => hook === name && step === Math.max(1, run.step))) {
        if (does === "throw") throw new Error(HOOK_BROKE);
        if (does === "generate") await run.generate(sideCall(`${run.turnId}:${run.step}:${name}`));
        if (does === "stop" && name === "onError") throw new AgentStopError("enough");
        if (does === "stop" && "stop" in draft) draft.stop("enough");
        if (does === "add" && "add" in draft) draft.add({ role: "user", content: "added" });
        if (does === "deny" && "deny" in draft) denyFirst(draft);
      }
    };
  };
  return Object.fromEntries(hookNames.map((name) => [name, hookAt(name)]));
}

function denyFirst(draft: Extract<HookDrafts[HookName], { deny: unknown }>): void {
  if (!("calls" in draft)) draft.deny("not now");
  else if (draft.calls[0]) draft.deny(draft.calls[0].callId, "not now");
}
