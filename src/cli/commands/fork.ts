import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { collectDefinitions, withModel } from "../../agents/index.ts";
import { describeFileError } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import { createRuntime, type Runtime, type TurnRest } from "../../runtime/index.ts";
import { type AgentRecord, DEFAULT_TENANT, type Usage } from "../../state/index.ts";
import { memoryStores, readRunFile, type Stores } from "../../stores/index.ts";
import { type Fork, fork, type RecordingSource } from "../../testing/index.ts";
import { type BudgetOptions, budgetOf } from "../budget-options.ts";
import { type CliContext, commandLine } from "../cli-context.ts";
import { type ExitCode, exitCodeOf, exitCodes } from "../failure.ts";
import { loadAgentFile } from "../job/agent-file.ts";
import { findAgent } from "../job/find-agent.ts";
import { fileJobOf } from "../job/job.ts";
import { keptOpen, type StoreOptions, storeLocation, withStore } from "../job/store-location.ts";
import { formatCost, formatCount, formatNumberOf } from "../view/format.ts";
import { columnsOf } from "../view/table.ts";
import { oneLine, printable } from "../view/terminal-text.ts";
import { wrapText } from "../view/text-width.ts";

export interface ForkCommandOptions extends StoreOptions, BudgetOptions {
  readonly at: { readonly turn: number; readonly step?: number | undefined };
  readonly model?: string | undefined;
  readonly input?: string | undefined;
  readonly agents?: string | undefined;
  readonly allow?: readonly string[] | undefined;
  /** Stores the fork in the store of the run. */
  readonly keep?: boolean | undefined;
  readonly json?: boolean | undefined;
}

/** Forks a run, from a store or a file, and shows the fork's turn beside the origin's. */
export async function forkCommand(context: CliContext, what: string, options: ForkCommandOptions): Promise<ExitCode> {
  if (what.endsWith(".json")) {
    const file = resolve(context.directory, what);
    if (options.keep === true) {
      throw new InvalidInputError(
        "--keep stores the fork in the store of the run, and a file is not a store; leave it out",
      );
    }
    return await forkOf(context, { source: file, root: await rootInFile(file), words: [] }, options);
  }
  const place = storeLocation(context, options);
  return await withStore(place, "openExisting", async (stores) => {
    const { rootAgentId } = await findAgent(stores, what);
    const root = await findAgent(stores, rootAgentId);
    const keeps = options.keep === true ? stores : undefined;
    return await forkOf(
      context,
      { source: { stores, agentId: rootAgentId }, root, keeps, words: place.words },
      options,
    );
  });
}

async function rootInFile(file: string): Promise<AgentRecord> {
  const { tree } = readRunFile(await textOf(file));
  const root = tree.agents.find(({ record }) => record.agentId === tree.rootAgentId);
  if (root) return root.record;
  throw new InvalidInputError(`the run does not contain its root agent "${tree.rootAgentId}"`);
}

async function textOf(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    throw new InvalidInputError(describeFileError(file, cause), { cause });
  }
}

interface Origin {
  readonly source: RecordingSource;
  readonly root: AgentRecord;
  /** The stores that keep the fork. Default: it stays in memory. */
  readonly keeps?: Stores | undefined;
  /** Options that name the store. */
  readonly words: readonly string[];
}

async function forkOf(
  context: CliContext,
  { source, root, keeps, words }: Origin,
  options: ForkCommandOptions,
): Promise<ExitCode> {
  const runtime = await runtimeOf(context, root, { keeps, options });
  try {
    const budget = budgetOf(options);
    const made = await fork(source, {
      runtime,
      at: options.at,
      ...(options.input === undefined ? {} : { input: options.input }),
      ...(options.allow === undefined ? {} : { allow: options.allow }),
      ...(budget ? { budget } : {}),
    });
    try {
      const rest = await made.turn.settled;
      await show(context, { made, rest, isKept: keeps !== undefined, words, isJson: options.json === true });
      return rest.status === "waiting" ? exitCodes.waiting : exitCodeOf(await made.turn.result);
    } finally {
      await made.close();
    }
  } finally {
    await runtime.shutdown();
  }
}

interface RuntimeParts {
  readonly keeps: Stores | undefined;
  readonly options: ForkCommandOptions;
}

/** A runtime with the definitions of the agent file; `--model` replaces the model of the root agent. */
async function runtimeOf(context: CliContext, root: AgentRecord, { keeps, options }: RuntimeParts): Promise<Runtime> {
  const { definition, agentId, metadata } = root;
  const file = options.agents ?? fileJobOf(metadata)?.file;
  if (file === undefined) {
    throw new InvalidInputError(
      `${agentId} was started by a program; name the file that exports its definition "${definition.name}" with --agents`,
    );
  }
  const { agents, mayDecide } = await loadAgentFile(file, context.directory);
  const known = collectDefinitions(agents).get(definition.name);
  if (!known) {
    throw new InvalidInputError(
      `${file} does not export the definition "${definition.name}" of ${agentId}; name another file with --agents`,
    );
  }
  const { model } = options;
  const changed = model === undefined ? known : withModel(known, model);
  return await createRuntime({
    agents: [changed, ...agents.filter(({ name }) => name !== definition.name)],
    stores: keeps ? keptOpen(keeps) : memoryStores(),
    mayDecide,
    // Other jobs of the store may have been left unfinished on purpose.
    recovers: "own",
    showCosts: true,
  });
}

/** The figures of one turn. */
interface TurnFigures {
  readonly status: string;
  readonly steps: number | null;
  readonly toolCalls: number | null;
  readonly tokens: number | null;
  /** Micro-dollars; `null` if a price is unknown. */
  readonly costMicros: number | null;
  readonly text: string;
}

interface Shown {
  readonly made: Fork;
  readonly rest: TurnRest;
  readonly isKept: boolean;
  readonly words: readonly string[];
  readonly isJson: boolean;
}

async function show(context: CliContext, shown: Shown): Promise<void> {
  const { made, rest, isKept, words, isJson } = shown;
  const { out, invocation } = context;
  const { turn, step } = made.point;
  const origin = made.originTurn && figuresOf(made.originTurn);
  const forked = await forkFigures(made, rest);
  const spent = await spentBy(made);
  const requests = rest.status === "waiting" && rest.reason === "request" ? rest.requests : [];
  if (isJson) {
    const waitsFor = requests.map(({ requestId, kind, name }) => ({ requestId, kind, name }));
    const from = { agentId: made.originId, turn, ...(step === null ? {} : { step }) };
    out(JSON.stringify({ agentId: made.agentId, forkedFrom: from, isKept, origin, fork: forked, spent, waitsFor }));
    return;
  }
  const width = columnsOf(context);
  const at = step === null ? String(turn) : `${turn}:${step}`;
  const lines = [
    `${made.agentId}: a fork of ${oneLine(made.originId)} at ${at}`,
    "",
    ...(origin === undefined ? ["Origin: it has no such turn."] : turnLines("Origin", origin)),
    "",
    ...turnLines("Fork", forked),
    "",
    `The fork itself used ${formatCount(spent.tokens)} tokens, ${formatCost(spent.costMicros)}; the rest is its past.`,
    ...(made.redacted > 0
      ? [`${formatNumberOf(made.redacted, "text")} of the run have secrets that the export redacted.`]
      : []),
    ...(requests.length > 0
      ? [
          `It waits for ${formatNumberOf(requests.length, "request")}: ${requests.map(({ name }) => oneLine(name)).join(", ")}.`,
        ]
      : []),
    ...(isKept ? [`Show it again: ${commandLine(invocation, "show", [made.agentId, ...words])}`] : []),
  ];
  for (const line of lines) wrapText(line, width).forEach(out);
}

function turnLines(title: string, { status, steps, toolCalls, tokens, costMicros, text }: TurnFigures): string[] {
  const figures = [
    status,
    ...(steps === null ? [] : [formatNumberOf(steps, "step")]),
    ...(toolCalls === null ? [] : [formatNumberOf(toolCalls, "tool call")]),
    ...(tokens === null ? [] : [`${formatCount(tokens)} tokens`, formatCost(costMicros)]),
  ];
  const shown = printable(text).trim();
  return [`${title}: ${figures.join(", ")}`, ...(shown === "" ? [] : shown.split("\n").map((line) => `  ${line}`))];
}

async function forkFigures({ turn }: Fork, rest: TurnRest): Promise<TurnFigures> {
  if (rest.status === "waiting") {
    return { status: "waiting", steps: null, toolCalls: null, tokens: null, costMicros: null, text: "" };
  }
  const result = await turn.result;
  const figures = figuresOf(result);
  return figures.text === "" ? { ...figures, text: result.error?.message ?? "" } : figures;
}

interface EndedTurn {
  readonly status: string;
  readonly steps: number;
  readonly toolCalls: number;
  readonly usage: Usage;
  readonly cost: number | null;
  readonly text: string;
}

function figuresOf({ status, steps, toolCalls, usage, cost, text }: EndedTurn): TurnFigures {
  const costMicros = cost === null ? null : Math.round(cost * 1_000_000);
  return { status, steps, toolCalls, tokens: usage.inputTokens + usage.outputTokens, costMicros, text };
}

/** What the turn of the fork and its subagents have used of the fork's own accounts. */
async function spentBy({
  runtime,
  agentId,
  turn,
}: Fork): Promise<{ readonly tokens: number; readonly costMicros: number }> {
  const account = await runtime.stores.account(DEFAULT_TENANT, `turn:${await turn.id}`);
  const { tokens = 0, costMicros = 0 } = account?.agentId === agentId ? account.used : {};
  return { tokens, costMicros };
}
