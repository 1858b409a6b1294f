import { type SimulatedTool, simulateTools, useModelInFork } from "../actors/index.ts";
import { type AgentDefinition, collectDefinitions, definitionRule, withModel } from "../agents/index.ts";
import {
  anyRule,
  createId,
  functionRule,
  listRule,
  nameRule,
  optionsOf,
  optionsRule,
  type OptionsSchema,
  portRule,
  recordRule,
  systemClock,
  textRule,
  wholeNumberRule,
} from "../base/index.ts";
import { type Budget, budgetRule, limitsOf } from "../budget/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { type LanguageModel, modelOf } from "../model/index.ts";
import {
  type Agent,
  createRuntime,
  cutPointAt,
  type CutPoint,
  forkedTree,
  type ForkPoint,
  type Runtime,
  storesRule,
  type Turn,
  type TurnResult,
} from "../runtime/index.ts";
import { type AgentRecord, type Json, textOf, turnIdOf, type Usage } from "../state/index.ts";
import { memoryStores, type StoredTree, type Stores } from "../stores/index.ts";
import { importableTree, readRecording, type Recording, type RecordingSource } from "./recording.ts";

/** Changes to the past of a fork. */
export interface ForkEdit {
  /** The text of the message with which the turn began. */
  readonly prompt?: string | undefined;
  /** The instructions of the turn that the fork continues, in the place of those of the definition. */
  readonly instructions?: string | undefined;
  /**
   * Texts of messages by their ids in the origin, as `agent.getMessages()` returns them: the id of a tool's result is that of its call,
   * the id of an answer `<turnId>:<step>`. An answer keeps its tool calls and loses its reasoning.
   */
  readonly messages?: Readonly<Record<string, string>> | undefined;
}

/** Options of `fork()`. */
export interface ForkOptions {
  /**
   * The turn of the root agent, from 1, and the step whose model call the fork makes again, from 1. Without `step`: after everything
   * that is stored of the turn.
   */
  readonly at: { readonly turn: number; readonly step?: number | undefined };
  /** The definitions of the tree's agents, possibly changed. Default: those of `runtime`; without it they are required. */
  readonly agents?: AgentDefinition | readonly AgentDefinition[] | undefined;
  /**
   * A model for the root agent. Default: that of its definition. With `runtime` the model is kept in this process until `close()`; other
   * processes, and later activations, use that of the definition.
   */
  readonly model?: LanguageModel | string | undefined;
  /**
   * After an ended turn: the input of the next one, required. Before the first step of a turn: replaces its input. Before a later step: a
   * message of the user that is added there. Default: none.
   */
  readonly input?: string | undefined;
  /** Changes to the past. Default: none. */
  readonly edit?: ForkEdit | undefined;
  /**
   * Functions in the place of tools, by the tool's name, in every agent of the tree. `"recorded"` is the default of tools with an effect
   * outside. Functions stay in this process until `close()`; elsewhere the tools are treated as without them.
   */
  readonly simulate?: Readonly<Record<string, SimulatedTool | "recorded">> | undefined;
  /** Tools of class `keyed` or `once`, client tools and tools of the provider that really run. Default: none. */
  readonly allow?: readonly string[] | undefined;
  /** Limits of the turn that the fork runs; each replaces the origin's limit of its name. Default: the limits of the origin, unused. */
  readonly budget?: Budget | undefined;
  /** Where the fork is stored by a runtime of its own; they are closed with it. Default: `memoryStores()`. */
  readonly stores?: Stores | undefined;
  /** Runs the fork as an ordinary tree of this runtime, with its definitions. Default: a runtime of its own. */
  readonly runtime?: Runtime | undefined;
}

/** The turn of the origin with which the turn of a fork can be compared. */
export interface OriginTurn {
  /** Id of the turn. */
  readonly turnId: string;
  /** How it ended. */
  readonly status: TurnResult["status"];
  /** Its answer. */
  readonly text: string;
  /** Number of its steps. */
  readonly steps: number;
  /** Number of its tool calls. */
  readonly toolCalls: number;
  /** Tokens of its own model calls. */
  readonly usage: Usage;
  /** Dollars for its own model calls; `null` if a price is unknown. */
  readonly cost: number | null;
}

/** A fork, whose turn runs. */
export interface Fork {
  /** Id of its root agent. */
  readonly agentId: string;
  /** Its root agent. */
  readonly agent: Agent<Json>;
  /** The turn that it runs. */
  readonly turn: Turn<Json>;
  /** The runtime that runs it. */
  readonly runtime: Runtime;
  /** The root agent of its origin. */
  readonly originId: string;
  /**
   * The same turn of the origin: the one that was continued or, for a fork after a turn, the next one. `undefined` if the origin has not
   * ended such a turn.
   */
  readonly originTurn: OriginTurn | undefined;
  /** Where it left its origin. */
  readonly point: ForkPoint;
  /** How many texts of the origin contain `[redacted]`, which the fork sees instead of the secrets. */
  readonly redacted: number;
  /** Forgets the simulated tools and the model of a shared runtime, and shuts down the fork's own runtime. */
  close(): Promise<void>;
}

const simulatedRule = (value: unknown, where: string): unknown =>
  value === "recorded" ? value : functionRule(value, where);

const forkOptions: OptionsSchema<ForkOptions> = {
  rules: {
    at: optionsRule<ForkOptions["at"]>({
      rules: { turn: wholeNumberRule(1), step: wholeNumberRule(1) },
      needed: ["turn"],
    }),
    agents: (value, where) =>
      Array.isArray(value)
        ? listRule("a definition made by defineAgent(), or a list of them", definitionRule)(value, where)
        : definitionRule(value, where),
    model: anyRule,
    input: nameRule,
    edit: optionsRule<ForkEdit>({
      rules: {
        prompt: textRule,
        instructions: textRule,
        messages: recordRule("an object that maps ids of messages to texts", textRule),
      },
      instead: { input: "prompt", results: "messages", answers: "messages" },
    }),
    simulate: recordRule('an object that maps names of tools to functions or "recorded"', simulatedRule),
    allow: listRule("a list of names of tools", nameRule),
    budget: budgetRule,
    stores: storesRule,
    runtime: portRule("a runtime made by createRuntime()", ["find", "agent", "shutdown", "follow"]),
  },
  needed: ["at"],
  instead: { step: "at: { turn, step }", turn: "at: { turn, step }", store: "stores", tools: "simulate" },
};

/**
 * Continues a recorded run from an earlier point as a new tree: it shares the past, has new ids, its origin (`forkedFrom` of its record)
 * and unused budgets, and runs live. Tools of class `none` run; tools with an effect outside do not, in any agent of the tree: such a
 * call gets the simulated result, or the recorded result of a call with equal arguments, or an error that the model can read. Resolves
 * when the turn runs.
 *
 * Rejects with `InvalidInputError` for invalid options, a point that the run does not have, unknown tools or messages, and missing
 * definitions; with the errors of reading the run.
 */
export async function fork(tree: RecordingSource, given: ForkOptions): Promise<Fork> {
  const options = optionsOf<ForkOptions>(given, "fork()", forkOptions);
  const { runtime: shared, stores } = options;
  if (shared && (options.agents || stores)) {
    throw new InvalidInputError("fork(): runtime has its own definitions and stores; leave out agents and stores");
  }
  const recording = await readRecording(tree);
  const point = cutPointAt(recording.tree, options.at);
  const definitions = definitionsOf(recording, options);
  const { simulations, allowed } = toolsOf(definitions, options);
  assertNotStubbed(rootOf(recording).record, options);
  const agentId = createId("fork");
  const forked = forkedTree(importableTree(recording), point, {
    agentId,
    now: systemClock.now(),
    allowed,
    ...changesOf(recording, point, { options, definitions }),
  });
  assertDefined(forked, definitions);
  const { tenant } = recording;
  if (shared && shared.tenant !== tenant) {
    throw new InvalidInputError(`fork(): the run is of tenant "${tenant}", and runtime of tenant "${shared.tenant}"`);
  }
  const forgetTools = simulateTools(agentId, simulations);
  const forgetModel =
    shared && options.model !== undefined
      ? useModelInFork(agentId, modelOf("fork(): model", options.model))
      : () => undefined;
  const forget = (): void => {
    forgetTools();
    forgetModel();
  };
  let own: Runtime | undefined;
  try {
    const runtime =
      shared ??
      (own = await createRuntime({
        agents: [...definitions.values()],
        stores: stores ?? memoryStores(),
        tenant,
        recovers: "own",
      }));
    await runtime.stores.importTree(forked, agentId, { replaces: "absent" });
    const agent = await runtime.find(agentId);
    await agent.start();
    const turn = startedTurn(agent, point, options);
    const close = async (): Promise<void> => {
      forget();
      await own?.shutdown();
    };
    const { entries: _, ...shown } = point;
    const { rootAgentId: originId, redacted } = recording;
    const originTurn = originTurnOf(recording, point.isOpen ? point.turn : point.turn + 1);
    return { agentId, agent, turn, runtime, originId, originTurn, point: shown, redacted, close };
  } catch (error) {
    forget();
    await own?.shutdown();
    throw error;
  }
}

/** A fork of a stubbed session has its stubs, which give the results of all tools. */
function assertNotStubbed({ stubs }: AgentRecord, { simulate = {}, allow = [] }: ForkOptions): void {
  if (!stubs || Object.keys(simulate).length + allow.length === 0) return;
  throw new InvalidInputError(
    "fork(): the run is of a session with stubs, which the fork keeps: they give the results of its tools; leave out simulate and allow",
  );
}

function startedTurn(agent: Agent<Json>, { turn, isOpen }: CutPoint, { input, budget }: ForkOptions): Turn<Json> {
  if (!isOpen) return agent.executeTurn(input ?? null, budget ? { budget } : {});
  return agent.openTurn() ?? agent.turn(turnIdOf(agent.agentId, turn));
}

function originTurnOf(recording: Recording, number: number): OriginTurn | undefined {
  const { entries, messages } = rootOf(recording);
  const end = entries.find((entry) => entry.type === "turn.ended" && entry.number === number);
  if (end?.type !== "turn.ended") return undefined;
  const { turnId, outcome: status, steps, toolCalls, usage, costMicros, outputMessageId } = end;
  const text = textOf(messages.find(({ id }) => id === outputMessageId)?.content ?? "");
  return { turnId, status, text, steps, toolCalls, usage, cost: costMicros === null ? null : costMicros / 1_000_000 };
}

function definitionsOf(
  recording: Recording,
  { agents, model, runtime }: ForkOptions,
): ReadonlyMap<string, AgentDefinition> {
  if (agents === undefined && !runtime) {
    throw new InvalidInputError(
      "fork(): agents is missing; give the definitions of the run's agents, or a runtime that has them",
    );
  }
  const given = runtime ? [...runtime.definitions.values()] : ([agents].flat(1) as readonly AgentDefinition[]);
  if (model === undefined) return collectDefinitions(given);
  const { name } = rootOf(recording).record.definition;
  const root = collectDefinitions(given).get(name);
  if (!root) throw missing([name], collectDefinitions(given));
  const changed = withModel(root, model);
  return new Map([...collectDefinitions([...given.filter((one) => one.name !== name), changed]), [name, changed]]);
}

function rootOf(recording: Recording) {
  const root = recording.agent(recording.rootAgentId);
  if (root) return root;
  throw new InvalidInputError(`the run does not contain its root agent "${recording.rootAgentId}"`);
}

function assertDefined({ agents }: StoredTree, definitions: ReadonlyMap<string, AgentDefinition>): void {
  const names = new Set(agents.map(({ record }) => record.definition.name).filter((name) => !definitions.has(name)));
  if (names.size > 0) throw missing([...names], definitions);
}

function missing(names: readonly string[], definitions: ReadonlyMap<string, AgentDefinition>): InvalidInputError {
  const known = [...definitions.keys()].join(", ") || "none";
  return new InvalidInputError(
    `fork(): agents of the run have the definition ${names.map((name) => `"${name}"`).join(", ")}, which is not among those given: ${known}`,
  );
}

/** Checks the names of tools: a misspelt one would change nothing, and would not be noticed. */
function toolsOf(
  definitions: ReadonlyMap<string, AgentDefinition>,
  { simulate = {}, allow = [] }: ForkOptions,
): { simulations: ReadonlyMap<string, SimulatedTool>; allowed: readonly string[] } {
  const all = [...definitions.values()];
  const own = all.flatMap(({ tools }) =>
    tools.tools.flatMap(({ kind, name }) => (kind === "function" || kind === "client" ? [name] : [])),
  );
  const hosted = all.flatMap(({ model }) => model.hostedTools ?? []);
  assertKnown("allow", allow, [...own, ...hosted]);
  assertKnown("simulate", Object.keys(simulate), own);
  const both = allow.find((name) => Object.hasOwn(simulate, name));
  if (both !== undefined) {
    throw new InvalidInputError(`fork(): "${both}" is in allow and in simulate; a tool either runs or is simulated`);
  }
  const functions = Object.entries(simulate).flatMap(([name, one]): [string, SimulatedTool][] =>
    one === "recorded" ? [] : [[name, one]],
  );
  return { simulations: new Map(functions), allowed: [...new Set(allow)] };
}

function assertKnown(option: string, names: readonly string[], known: readonly string[]): void {
  const unknown = names.find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const list = [...new Set(known)].join(", ") || "none";
  throw new InvalidInputError(
    `fork(): ${option} names the tool "${unknown}", which no agent of the tree has; its tools are ${list}`,
  );
}

interface Changing {
  readonly options: ForkOptions;
  readonly definitions: ReadonlyMap<string, AgentDefinition>;
}

/** Where the input goes, and the edits by the ids of the origin. */
function changesOf(recording: Recording, point: CutPoint, { options, definitions }: Changing) {
  const { input, edit = {}, budget } = options;
  const messages = new Map(Object.entries(edit.messages ?? {}));
  const { isOpen, step, turn } = point;
  if (!isOpen && input === undefined) {
    throw new InvalidInputError(
      `fork(): turn ${turn} has ended at this point, so the fork needs an input; give input, or a step of the turn in at`,
    );
  }
  if (isOpen && step === null && input !== undefined) {
    throw new InvalidInputError(
      `fork(): turn ${turn} is open at this point, where a message may come between a call and its result; name a step in at`,
    );
  }
  if (!isOpen && edit.instructions !== undefined) {
    throw new InvalidInputError(
      "fork(): edit.instructions changes an open turn, and the turn has ended at this point; change the definition in agents",
    );
  }
  const replaces = step === 1 && input !== undefined;
  if (replaces && edit.prompt !== undefined) {
    throw new InvalidInputError(
      "fork(): before the first step, input and edit.prompt replace the same message; give one of them",
    );
  }
  const prompt = replaces ? input : edit.prompt;
  if (prompt !== undefined) messages.set(promptIdOf(recording, point), prompt);
  return {
    messages,
    instructions: edit.instructions,
    added: isOpen && !replaces ? input : undefined,
    limits: isOpen && budget ? limitsOf(budget, systemClock.now()) : undefined,
    resolvesAgain: changedAgents(recording, definitions),
  };
}

function promptIdOf(recording: Recording, { turnId, turn }: CutPoint): string {
  const started = rootOf(recording).entries.find((entry) => entry.type === "turn.started" && entry.turnId === turnId);
  const [id] = started?.type === "turn.started" ? started.inputMessageIds : [];
  if (id !== undefined) return id;
  throw new InvalidInputError(
    `fork(): turn ${turn} has no input that could be replaced; name a message in edit.messages`,
  );
}

/** Agents whose definition is not the one of their last turn. */
function changedAgents({ agents }: Recording, definitions: ReadonlyMap<string, AgentDefinition>): Set<string> {
  return new Set(
    agents.flatMap(({ agentId, record, entries }) => {
      const last = entries.findLast((entry) => entry.type === "turn.started");
      const hash = last?.type === "turn.started" ? last.definition.hash : undefined;
      const now = definitions.get(record.definition.name)?.ref.hash;
      return hash === undefined || now === undefined || hash === now ? [] : [agentId];
    }),
  );
}
