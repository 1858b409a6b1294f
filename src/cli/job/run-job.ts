import { type Agent, type Turn, type TurnRest, createRuntime } from "../../runtime/index.ts";
import { type TroupeEvent, turnIdOf } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import { type CliContext, userName } from "../cli-context.ts";
import { type ExitCode, exitCodes } from "../failure.ts";
import { askPerson, type Conversation, TerminalRequests } from "../inline/terminal-requests.ts";
import { ReadlineInput } from "../inline/line-input.ts";
import { createReporter, type ViewOptions } from "../view/create-reporter.ts";
import { othersDecidingLines } from "../view/request-lines.ts";
import { conclude } from "./conclude.ts";
import { keepPage, pageLines, startInspection } from "./inspection.ts";
import { timingOf, watchInterrupts } from "./interrupts.ts";
import type { Following, Job, JobOptions } from "./job.ts";
import { keptOpen } from "./store-location.ts";
import { readStory } from "./story.ts";
import { EventFeed, listenToTree, treeAtRest } from "./tree-events.ts";
import { workerLine, WorkerWatch, whereOf } from "./where.ts";

/** Runs or continues one job, shows it, and returns the exit code. The stores remain open. */
export async function runJob(context: CliContext, stores: Stores, job: Job, options: JobOptions): Promise<ExitCode> {
  const where = await whereOf(context, job, options);
  const inspector = await startInspection(options, job.rootAgentId);
  const runtime = await createRuntime({
    agents: job.agents,
    stores: keptOpen(stores),
    mayDecide: job.mayDecide,
    // Other jobs of the store may have been left unfinished on purpose.
    recovers: "own",
    // The tables and a later `show` need the costs.
    showCosts: true,
    streaming: inspector ? "always" : undefined,
    ...where.part,
  });
  inspector?.watch(runtime);
  const accounts = () => runtime.accounts(job.rootAgentId);
  const reporter = createReporter(context, options, { rootAgentId: job.rootAgentId, accounts });
  const following = { runtime, job, reporter, where, inspector };
  const restore = (): void => reporter.close();
  // On a crash or `process.exit` no `finally` runs, and the terminal must be restored.
  process.once("exit", restore);
  // The timers of the runtime do not keep the process alive, but this job must.
  const alive = setInterval(() => {}, 60_000);
  try {
    return await followJob(context, { ...following, isInteractive: isInteractive(context, options) });
  } finally {
    reporter.close();
    // The runtime keeps running, so that the page remains fully usable.
    await keepPage(inspector, context);
    process.off("exit", restore);
    await runtime.shutdown();
    await inspector?.close();
    clearInterval(alive);
  }
}

/** Whether a person can type in this process, and more than the answer is shown. */
export function isInteractive(
  { stdin, stdout }: Pick<CliContext, "stdin" | "stdout">,
  { json, quiet }: ViewOptions,
): boolean {
  return stdin.isTTY && !stdin.readableEnded && stdout.isTTY && json !== true && quiet !== true;
}

/** Starts or continues a job's turn, and shows it until it ends or waits. */
async function followJob(context: CliContext, following: Following): Promise<ExitCode> {
  const { runtime, job, reporter, where } = following;
  const { rootAgentId } = job;
  const source = { runtime, rootAgentId, isElsewhere: where.queues !== undefined };
  const feed = new EventFeed((event) => reporter.event(event));
  reporter.begin(job.header);
  where.remarks.forEach((remark) => reporter.notice(remark));
  const agent = await runtime.agent(job.agents[0].name, { agentId: rootAgentId, metadata: job.metadata });
  if (following.inspector) reporter.keep(pageLines(following.inspector));
  let after: string | undefined;
  await readStory(runtime.stores, rootAgentId, {
    listener: (events) => {
      feed.skip(events);
      reporter.past(events);
      after = events.at(-1)?.cursor ?? after;
    },
    hasTexts: true,
  });
  const desk = following.isInteractive ? terminalRequests(context, following) : undefined;
  let isTakenUp = false;
  const hear = (event: TroupeEvent): void => {
    isTakenUp = true;
    feed.push(event);
    desk?.event(event);
  };
  const stopListening = listenToTree(source, hear, after);
  const interrupts = watchJobInterrupts(context, following, agent);
  const stopLooking = watchWorkers(context, following, () => isTakenUp);
  try {
    if (!job.isResumed && agent.state.status === "paused") {
      reporter.notice(`${rootAgentId} is paused; this turn ends the pause.`);
    }
    const turn = await turnOf(agent, job);
    const turnId = await turn.id;
    const settled = (): Promise<TurnRest> => agent.turn(turnId).settled;
    const rest = desk === undefined ? await settled() : await desk.rest(settled);
    if (rest.status !== "waiting") await interrupts.turnEnded();
    else if (rest.reason === "paused") await treeAtRest(runtime.stores, source);
    stopListening();
    return await conclude(context, following, feed, rest);
  } finally {
    stopLooking();
    interrupts.stop();
    stopListening();
  }
}

/** Warns when no worker starts the job. Does nothing if this process runs it. */
function watchWorkers(context: CliContext, following: Following, isTakenUp: () => boolean): () => void {
  const { job, reporter, where } = following;
  if (where.queues === undefined) return () => {};
  const watch = new WorkerWatch({
    queues: where.queues,
    isTakenUp,
    definitionName: job.agents[0].name,
    workerLine: workerLine(context, job),
    tell: (line) => reporter.notice(line),
  });
  return watch.start();
}

/** The turn to follow. Reads the open turn before the agent starts, because the turn may end immediately. */
async function turnOf(agent: Agent, { isResumed, rootAgentId, input, budget }: Job): Promise<Turn> {
  const { openTurnId, turnCount, status } = agent.state;
  await agent.start();
  // A requested turn must run, so a new one ends a pause too.
  if (isResumed || status === "paused") await agent.resume();
  const isNew = !isResumed || input === null || (openTurnId === null && turnCount === 0);
  // Another process may have ended the turn that was to be continued.
  return isNew ? agent.executeTurn(input, { budget }) : agent.turn(openTurnId ?? turnIdOf(rootAgentId, turnCount));
}

function terminalRequests(
  { stdin, stdout, invocation }: CliContext,
  { runtime, job, reporter }: Following,
): TerminalRequests {
  const converse = (): Conversation => {
    const release = reporter.hold();
    const input = new ReadlineInput({
      input: stdin,
      output: stdout,
      isTerminal: true,
      // Does not pause the agent, so that a decision from another process can take effect.
      onInterrupt() {
        reporter.notice("No further questions are asked here; press Ctrl-C to pause the running work.");
        input.close();
      },
    });
    const say = (line: string): void => {
      stdout.write(`${line}\n`);
    };
    return {
      say,
      ask: (request, signal) => askPerson(input, say, request, signal),
      close() {
        input.close();
        release();
      },
    };
  };
  return new TerminalRequests({
    runtime,
    rootAgentId: job.rootAgentId,
    by: userName(),
    commandsFor: (request) => othersDecidingLines(request, invocation, job.store),
    converse,
  });
}

interface JobInterrupts {
  stop(): void;
  /** Called when the turn has ended: from now on Ctrl-C leaves. Ends a requested pause that the turn did not reach. */
  turnEnded(): Promise<void>;
}

function watchJobInterrupts(context: CliContext, { job, reporter }: Following, agent: Agent): JobInterrupts {
  let pausing: Promise<void> | undefined;
  let isOver = false;
  const leave = (exitCode: number): never => {
    reporter.close();
    const lines = [`Left at once; resume with: ${job.resumeCommand}`, ...job.store.remarks];
    lines.forEach(context.note);
    process.exit(exitCode);
  };
  const pause = (): void => {
    if (isOver) leave(exitCodes.interrupted);
    reporter.notice("Pausing at the next safe point; press Ctrl-C again to leave at once.");
    // A failing pause also fails the awaited turn, which reports it.
    pausing = agent.pause().catch(() => {});
  };
  return {
    stop: watchInterrupts(process, { pause, leave }, timingOf(context)),
    async turnEnded() {
      isOver = true;
      if (pausing === undefined) return;
      await pausing;
      await agent.resume();
      reporter.notice("The turn ended before it could pause.");
    },
  };
}
