import { type AgentDefinition, definitionRule } from "../agents/index.ts";
import {
  anyRule,
  type Clock,
  clockRule,
  createId,
  evalVariables,
  functionRule,
  idRule,
  listRule,
  type OptionsSchema,
  optionsOf,
  signalRule,
} from "../base/index.ts";
import { budgetRule } from "../budget/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { run, type RunOptions, type TurnResult, type TurnSpending, TurnWaitingError } from "../runtime/index.ts";
import {
  type Content,
  DEFAULT_TENANT,
  type Json,
  meantCall,
  type StopReason,
  type StoredError,
  textOf,
} from "../state/index.ts";
import { memoryStores, type StoredTree, type Stores } from "../stores/index.ts";
import { assertMayStart, noteCase } from "./case-log.ts";
import { assertMayCall } from "./live-models.ts";
import { recordingOf } from "./recording.ts";
import { seededRandom } from "./simulation/seeded-random.ts";

/** Options of `runCase()`. */
export interface RunCaseOptions
  extends Pick<
    RunOptions,
    "agentId" | "agents" | "auth" | "budget" | "clock" | "decide" | "onEvent" | "prices" | "settings" | "signal"
  > {}

/** A tool call of a case. */
export interface CaseToolCall {
  /** The definition of the agent that made the call. */
  readonly agentName: string;
  /** Name of the tool. */
  readonly name: string;
  /** The validated arguments; those of the model as JSON, or else its text, if they were refused. */
  readonly arguments: Json;
  /** The result as the model saw it; `undefined` if the turn ended before. */
  readonly result: string | undefined;
  /** Whether the result is an error. */
  readonly isError: boolean;
}

/** What a run did. All values are plain, and belong to the caller. */
export interface CaseResult<Output = unknown> {
  /** The root agent. */
  readonly agentId: string;
  /** The definition of the root agent. */
  readonly agentName: string;
  /** The input of the run. */
  readonly input: Content;
  /** How the turn ended. */
  readonly status: TurnResult["status"];
  /** The answer. For a stopped or failed turn its text so far, or a sentence that explains why it has none. */
  readonly text: string;
  /** The validated answer, if the definition has an `output` schema and the turn completed. */
  readonly output: Output | undefined;
  /** Why it ended. */
  readonly stopReason: StopReason;
  /** The error that ended the turn; `null` unless it failed. */
  readonly error: StoredError | null;
  /** Model calls of the root agent with their tools. */
  readonly steps: number;
  /** The tool calls of the root agent in their order, then those of each subagent. */
  readonly toolCalls: readonly CaseToolCall[];
  /** Tokens and dollars, also of subagents. */
  readonly spent: TurnSpending;
  /** From the start of the runtime to the end of the turn, in milliseconds of its clock. */
  readonly durationMs: number;
  /** The whole run, as `stores.exportTree()` returns it. */
  readonly tree: StoredTree;
}

const caseOptions: OptionsSchema<RunCaseOptions> = {
  rules: {
    agentId: idRule,
    agents: listRule("a list of definitions made by defineAgent()", definitionRule),
    auth: anyRule,
    budget: budgetRule,
    clock: clockRule,
    decide: functionRule,
    onEvent: functionRule,
    prices: anyRule,
    settings: anyRule,
    signal: signalRule,
  },
  instead: {
    answers: "decide",
    onRequest: "decide",
    limits: "budget",
    model: "a definition made by withModel()",
    stores: "run({ stores }); a case has its own memory",
  },
};

/**
 * Runs one turn of an agent in a runtime of its own, in memory, and returns what it did. A turn that fails or is stopped is a result too. The
 * runtime is always shut down. While the environment variable `CI` is set, agents whose model calls a server are refused: use `recordedModel()`
 * or `scriptedModel()`, or run `troupe eval --live`.
 *
 * Rejects with `InvalidInputError` for invalid options, a model that must not be called, and a turn that waits for a decision that `decide` does
 * not make.
 */
export async function runCase<Output>(
  definition: AgentDefinition<Output>,
  input: Content,
  given?: RunCaseOptions,
): Promise<CaseResult<Output>> {
  definitionRule(definition, "runCase(): its definition");
  const options = optionsOf<RunCaseOptions>(given, "runCase()", caseOptions);
  return await runNoted("case", { definition, input, options });
}

interface Noted<Output> {
  readonly definition: AgentDefinition<Output>;
  readonly input: Content;
  readonly options: RunCaseOptions;
}

/** Runs a case or a judge, and notes it for the test that it belongs to. */
export async function runNoted<Output>(
  kind: "case" | "judge",
  { definition, input, options }: Noted<Output>,
): Promise<CaseResult<Output>> {
  assertMayStart();
  assertMayCall("runCase()", [definition, ...(options.agents ?? [])]);
  const agentId = options.agentId ?? createId(kind);
  const stores = memoryStores();
  try {
    const { clock } = options;
    const passed = stopwatch(clock);
    const result = await resultOf(definition, input, {
      ...options,
      ...repeatable(clock),
      agentId,
      stores: keptOpen(stores),
    });
    const durationMs = passed();
    const tree = await stores.exportTree(DEFAULT_TENANT, agentId);
    if (!tree) throw new InvalidInputError(`runCase(): the run "${agentId}" was not stored`);
    await keepRun(tree);
    const { status, text, output, stopReason, steps, spent } = result;
    const { tree: whole } = spent;
    const tokens = whole.inputTokens + whole.outputTokens;
    const toolCalls = toolCallsOf(tree);
    const { name: agentName } = definition;
    noteCase({
      kind,
      agentId,
      agentName,
      stopReason,
      steps,
      toolCalls: toolCalls.length,
      tokens,
      cost: whole.cost,
      durationMs,
    });
    const error = result.error && structuredClone(result.error);
    const own = structuredClone({ input, output, spent, tree });
    return { agentId, agentName, status, text, stopReason, error, steps, toolCalls, durationMs, ...own };
  } finally {
    await stores.close();
  }
}

/** With a clock that passes time by itself, pauses between retries are the same in each run. */
export function repeatable(clock: Clock | undefined): Pick<RunOptions, "random"> {
  if (!clock?.work) return {};
  const numbers = seededRandom(1);
  return { random: () => numbers.next() };
}

/** Returns the milliseconds since this call, of the clock or else of the system. */
export function stopwatch(clock: Clock | undefined): () => number {
  const time = clock ? () => clock.elapsed() : () => performance.now();
  const started = time();
  return () => time() - started;
}

/** `run()` closes its stores, and the run is read from them afterwards. */
function keptOpen(stores: Stores): Stores {
  return { ...stores, close: async () => {} };
}

async function resultOf<Output>(
  definition: AgentDefinition<Output>,
  input: Content,
  options: RunOptions,
): Promise<TurnResult<Output>> {
  try {
    return await run(definition, input, { ...options, throwOnFailure: false, showCosts: true });
  } catch (error) {
    if (!(error instanceof TurnWaitingError)) throw error;
    const asked = error.requests.map(({ kind, name }) => `${kind} of "${name}"`).join(", ");
    throw new InvalidInputError(
      `runCase(): the turn waits for a decision: ${asked || "it is paused"}; give decide: (request) => ({ … })`,
      { cause: error },
    );
  }
}

/** Stores a run where `troupe eval --keep` asks for it. */
export async function keepRun(tree: StoredTree): Promise<void> {
  const path = process.env[evalVariables.store];
  if (path === undefined || path === "") return;
  const { sqliteStores } = await import("../stores/sqlite.ts");
  const kept = sqliteStores(path);
  try {
    await kept.importTree(tree, tree.rootAgentId, { replaces: "absent" });
  } finally {
    await kept.close();
  }
}

/** In the order of the answers that made them. */
export function toolCallsOf(tree: StoredTree): CaseToolCall[] {
  return recordingOf(tree).agents.flatMap((agent) => {
    const calls = agent.messages.flatMap((message) => (message.role === "assistant" ? (message.toolCalls ?? []) : []));
    return calls.map(meantCall).map(({ callId, name, arguments: written }) => {
      const { arguments: checked, message } = agent.result(callId) ?? {};
      return {
        agentName: agent.record.definition.name,
        name,
        // Arguments that were refused are stored as null.
        arguments: checked === undefined || checked === null ? parsed(written) : structuredClone(checked),
        result: message && textOf(message.content),
        isError: message?.isError === true,
      };
    });
  });
}

/** The arguments as the model wrote them: JSON, or else a text. */
function parsed(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}
