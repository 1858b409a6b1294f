import type { AgentDefinition } from "../../agents/index.ts";
import { type Agent, createRuntime, type Runtime, type Turn } from "../../runtime/index.ts";
import { NotFoundError } from "../../errors/index.ts";
import type { JsonObject } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import type { CliContext } from "../cli-context.ts";
import { type ExitCode, exitCodeOf, exitCodes } from "../exit-codes.ts";
import { createReporter, type ViewOptions } from "../view/create-reporter.ts";
import type { Reporter } from "../view/reporter.ts";
import { EventFeed } from "./event-feed.ts";
import { watchInterrupts } from "./interrupts.ts";
import { startInspection } from "./inspection.ts";
import { lastEndOf, readStory } from "./story.ts";
import { treeAtRest } from "./tree-rest.ts";

export interface Job {
  /** The root's definition, and others that can be started by name. */
  readonly agents: readonly [AgentDefinition, ...AgentDefinition[]];
  readonly rootAgentId: string;
  readonly metadata: JsonObject;
  /** What to ask when no turn is open. */
  readonly input: string;
  /** Whether the agent is there already and its open turn is to be carried on. */
  readonly isResumed: boolean;
  readonly header: readonly string[];
  /** Command lines that a person may type next. */
  readonly resumeCommand: string;
  readonly showCommand: string;
}

export interface JobOptions extends ViewOptions {
  readonly inspect?: boolean | undefined;
}

/** Runs or carries on one job, shows it, and gives the exit code. The stores stay open. */
export async function runJob(context: CliContext, stores: Stores, job: Job, options: JobOptions): Promise<ExitCode> {
  const inspector = options.inspect === true ? await startInspection(context.note) : undefined;
  const runtime = await createRuntime({ agents: job.agents, stores, onInspect: inspector?.onInspect });
  const accounts = () => runtime.accounts(job.rootAgentId);
  const reporter = createReporter(context, options, { rootAgentId: job.rootAgentId, accounts });
  const restore = (): void => reporter.close();
  // Nothing else runs any more when a process crashes or is made to leave.
  process.once("exit", restore);
  // The runtime's own timers let a process end; somebody waits for this job.
  const alive = setInterval(() => {}, 60_000);
  try {
    return await follow(context, { runtime, job, reporter });
  } finally {
    clearInterval(alive);
    reporter.close();
    process.off("exit", restore);
    await runtime.shutdown();
    await inspector?.close();
  }
}

interface Following {
  readonly runtime: Runtime;
  readonly job: Job;
  readonly reporter: Reporter;
}

async function follow(context: CliContext, { runtime, job, reporter }: Following): Promise<ExitCode> {
  const { rootAgentId } = job;
  const feed = new EventFeed((event) => reporter.event(event));
  reporter.begin(job.header);
  const agent = await runtime.agent(job.agents[0].name, { agentId: rootAgentId, metadata: job.metadata });
  const { events } = await readStory(runtime.stores, rootAgentId);
  feed.skip(events);
  reporter.past(events);
  const subscription = runtime.subscribe((event) => {
    if (event.rootAgentId === rootAgentId) feed.push(event);
  });
  const stopWatching = watchInterrupts(
    process,
    {
      pause: () => {
        reporter.notice("Pausing at the next safe point; Ctrl-C again leaves at once.");
        // A pause that fails shows as the failure of the turn that is awaited.
        agent.pause().catch(() => {});
      },
      leave: (exitCode) => {
        reporter.close();
        context.note(`Left at once; go on with: ${job.resumeCommand}`);
        process.exit(exitCode);
      },
    },
    () => performance.now(),
  );
  try {
    const turn = await openTurn(agent, job);
    const rest = await turn.settled;
    if (rest.status === "waiting") await treeAtRest(runtime, rootAgentId);
    subscription.unsubscribe();
    return await conclude({ runtime, job, reporter }, feed, rest.status === "waiting");
  } finally {
    stopWatching();
    subscription.unsubscribe();
  }
}

/** The turn to follow. Which one is open is asked before the agent starts: what was left of it may take no time at all. */
async function openTurn(agent: Agent, { isResumed, input }: Job): Promise<Turn> {
  const { openTurnId } = agent.state;
  await agent.start();
  if (isResumed) await agent.resume();
  return isResumed && openTurnId !== null ? agent.turn(openTurnId) : agent.executeTurn(input);
}

async function conclude({ runtime, job, reporter }: Following, feed: EventFeed, isPaused: boolean): Promise<ExitCode> {
  const { rootAgentId, resumeCommand, showCommand } = job;
  const { events, agents, accounts } = await readStory(runtime.stores, rootAgentId);
  for (const event of events) feed.push(event);
  const end = isPaused ? null : (lastEndOf(events, rootAgentId) ?? null);
  const remarks = end === null ? [`Paused. Go on with: ${resumeCommand}`] : [`Look at it again: ${showCommand}`];
  reporter.end({ end, agents, accounts, now: Date.now(), remarks });
  if (end === null) return exitCodes.interrupted;
  return exitCodeOf({ status: statusOf(end.type), stopReason: end.stopReason });
}

export function statusOf(type: "turn.completed" | "turn.stopped" | "turn.failed"): "completed" | "stopped" | "failed" {
  return type === "turn.completed" ? "completed" : type === "turn.stopped" ? "stopped" : "failed";
}

/** Shows a job that has ended as it would be shown at its end. */
export async function showEnded(
  context: CliContext,
  stores: Stores,
  job: Pick<Job, "rootAgentId" | "header" | "showCommand">,
  options: ViewOptions,
): Promise<ExitCode> {
  const { events, agents, accounts } = await readStory(stores, job.rootAgentId);
  const end = lastEndOf(events, job.rootAgentId);
  if (end === undefined) throw new NotFoundError(`agent "${job.rootAgentId}" has not ended any turn`);
  const reporter = createReporter(context, options, { rootAgentId: job.rootAgentId, accounts: async () => accounts });
  reporter.begin(job.header);
  reporter.past(events);
  reporter.end({ end, agents, accounts, now: end.at, remarks: [`Look at it again: ${job.showCommand}`] });
  return exitCodeOf({ status: statusOf(end.type), stopReason: end.stopReason });
}
