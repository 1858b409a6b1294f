import type { AgentDefinition } from "../../agents/index.ts";
import type { Budget } from "../../budget/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import { type AgentRecord, DEFAULT_TENANT, endOfTurn, type EntryOf } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import { type CliContext, commandLine } from "../cli-context.ts";
import type { ExitCode } from "../failure.ts";
import { oneLine } from "../view/terminal-text.ts";
import { loadAgentFile } from "./agent-file.ts";
import { jobOfQuestion, withLeadTools } from "./ask-job.ts";
import { offlineSpeedOf } from "./offline-speed.ts";
import { showEnded } from "./conclude.ts";
import { isUnfinished } from "./find-agent.ts";
import { askJobOf, fileJobOf, jobOfFile, type Job, type JobOptions } from "./job.ts";
import { runJob } from "./run-job.ts";
import type { StoreLocation } from "./store-location.ts";
import { pathOf, withMcpTools } from "../mcp/mcp-tools.ts";
import { newestInput } from "./turn-input.ts";

/** A root agent to continue, and how. */
interface GoingOn {
  readonly root: AgentRecord;
  readonly store: StoreLocation;
  /** Called only if there is something to run. */
  readonly job: () => Job | Promise<Job>;
  /** Budget of a new turn after a limit stopped the last one. */
  readonly budget: Budget | undefined;
}

/**
 * Continues an open turn. With a budget, starts a new turn after a limit stopped the last one. Otherwise shows the
 * agent's result. Throws `InvalidInputError` for a budget that no turn can use.
 */
export async function goOn(
  context: CliContext,
  stores: Stores,
  { root, store, job, budget }: GoingOn,
  options: JobOptions,
): Promise<ExitCode> {
  const { agentId } = root;
  if (isUnfinished(root)) {
    assertNoOpenTurn(root, budget);
    return await runJob(context, stores, { ...(await job()), budget }, options);
  }
  if (budget !== undefined) {
    const rows = await stores.readJournal({ tenant: DEFAULT_TENANT, agentId }, 0);
    assertStopped(agentId, endOfTurn(rows.flatMap(({ entries }) => entries)));
    return await runJob(context, stores, { ...(await job()), input: null, budget }, options);
  }
  return await showEnded(context, stores, await endedPlace(context, stores, { root, store }), options);
}

/** Throws if a turn is open, because its limits are fixed at its start. */
function assertNoOpenTurn({ agentId, openTurnId }: AgentRecord, budget: Budget | undefined): void {
  if (openTurnId === null || budget === undefined) return;
  throw new InvalidInputError(
    `turn ${openTurnId} is open and its limits are fixed; resume ${agentId} without a budget, or abort it and then resume with one`,
  );
}

function assertStopped(agentId: string, end: EntryOf<"turn.ended"> | undefined): void {
  if (end === undefined || end.outcome !== "completed") return;
  throw new InvalidInputError(
    `the last turn of ${agentId} is completed, so there is nothing to resume; send a message with \`run … --agent-id ${agentId}\``,
  );
}

/** Header and commands for an ended agent, from the store alone: its definition may be unknown. */
async function endedPlace(
  { invocation }: CliContext,
  stores: Stores,
  { root, store }: StoredRoot,
): Promise<Pick<Job, "rootAgentId" | "header" | "showCommand" | "store">> {
  const { agentId, metadata } = root;
  const question = askJobOf(metadata)?.question;
  const input = question === undefined ? await newestInput(stores, root) : "";
  return {
    rootAgentId: agentId,
    header: [
      ...(question === undefined ? [] : [`Question: ${oneLine(question)}`]),
      ...(input === "" ? [] : [`Input: ${oneLine(input)}`]),
      `${agentId} has already ended; its result from ${store.name}:`,
    ],
    showCommand: commandLine(invocation, "show", [agentId, ...store.words]),
    store,
  };
}

export interface AgentsOption {
  /** File with the definitions, for agents that were started from code or whose file has moved. */
  readonly agents?: string | undefined;
  /** File with MCP servers, whose tools the agent gets. Default: the one that the agent was started with. */
  readonly mcp?: string | undefined;
}

interface StoredRoot {
  readonly root: AgentRecord;
  readonly store: StoreLocation;
}

/** A stored root agent as a job. Throws `InvalidInputError` if its definition is not found. */
export async function jobToResume(
  context: CliContext,
  stores: Stores,
  { root, store }: StoredRoot,
  { agents: given, mcp: givenMcp }: AgentsOption,
): Promise<Job> {
  const { agentId: rootAgentId, metadata, definition } = root;
  const place = { rootAgentId, store, isResumed: true };
  const question = askJobOf(metadata);
  if (question !== undefined) {
    const tokensPerSecond = offlineSpeedOf(context.environment);
    const job = jobOfQuestion(context, question, { ...place, tokensPerSecond });
    return await withLeadTools(context, job, { ...question, mcp: pathOf(context, givenMcp) ?? question.mcp });
  }
  const work = fileJobOf(metadata);
  const file = given ?? work?.file;
  if (file === undefined) {
    throw new InvalidInputError(
      `${rootAgentId} was started by a program; name the file that exports its definition "${definition.name}" with --agents`,
    );
  }
  const mcp = pathOf(context, givenMcp) ?? work?.mcp;
  const { agents, mayDecide } = await withMcpTools(context, await loadAgentFile(file, context.directory), mcp);
  // Before its first turn, only the command's metadata contains its input.
  const isUnbegun = root.turnCount === 0 && root.openTurnId === null;
  const input = isUnbegun ? (work?.input ?? "") : await newestInput(stores, root);
  const job = jobOfFile(context, { file, agents: named(agents, definition.name, file), input, mayDecide, mcp }, place);
  return { ...job, metadata };
}

function named(
  agents: readonly AgentDefinition[],
  name: string,
  file: string,
): readonly [AgentDefinition, ...AgentDefinition[]] {
  const wanted = agents.find((agent) => agent.name === name);
  if (wanted !== undefined) return [wanted, ...agents.filter((agent) => agent !== wanted)];
  throw new InvalidInputError(`${file} exports no agent "${name}"; name the file that exports it with --agents`);
}
