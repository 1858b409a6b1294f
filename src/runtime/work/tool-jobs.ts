import {
  type AttemptEnd,
  type CallResult,
  errorResult,
  endOfError,
  endOfOutput,
  executeTool,
  guardedResult,
  isOnce,
  isRunHere,
  isStubbed,
  notRun,
  reconcileCall,
  unknownResult,
} from "../../actors/index.ts";
import type { DeadCause, Job, JobOutcome, JobRun, Queues, ToolJob } from "../../queues/index.ts";
import { type CallEnd, type QueuedCall, callEndedKey, queuedCallKey } from "../../state/index.ts";
import { type LeftByRun, queuedAttempt } from "./queued-run.ts";
import type { AgentDefinition } from "../../agents/index.ts";
import { abortable, type Clock, combineSignals, faultPoint, untilReached } from "../../base/index.ts";
import { StoreUnavailableError } from "../../errors/index.ts";
import type { GuardContext } from "../../hooks/index.ts";
import type { Stores } from "../../stores/index.ts";
import { type Auth, concealCredentials, type Tool } from "../../tools/index.ts";
import type { TurnAuth } from "../agent/turn-auth.ts";
import type { TurnContexts } from "../agent/turn-contexts.ts";
import type { LiveAgents } from "../placement/live-agents.ts";
import type { LiveBroadcast } from "../follow/event-bus.ts";
import { type KnownCall, knownCall, toolOf, type WaitingCall, waitingCall } from "../agent/call-queue.ts";

/** The services of a process that running queued tools needs. */
export interface ToolJobDependencies {
  readonly stores: Stores;
  readonly queues: Queues;
  readonly tenant: string;
  readonly processId: string;
  readonly leaseMs: number;
  readonly clock: Clock;
  readonly definitions: ReadonlyMap<string, AgentDefinition>;
  readonly auth: TurnAuth;
  readonly contexts: TurnContexts;
  readonly live: LiveAgents;
  readonly broadcast: LiveBroadcast;
  /** Aborted when the runtime is shut down. */
  readonly closed: AbortSignal;
  /** Resolves when other processes consider this one alive. */
  present(): Promise<void>;
  /** Reads which timers are due, because one was set. */
  lookAtTimers(): void;
  /** Notifies agents that have new inbox items. */
  notify(agentIds: readonly string[]): void;
}

/** Calls of a process that are running, or whose end is not posted yet. */
const atWork = new WeakMap<ToolJobDependencies, Set<string>>();

/**
 * Runs the body of a queued tool and posts its end, which the agent's owner journals. All user code of the call runs in this
 * process.
 *
 * Invariants
 * 1. The store has a claim before the body runs: the body of a call that must not be repeated starts once, in one process.
 * 2. The end is posted before the job is done; only the first post of an attempt counts.
 * 3. A duplicate job, a late job, or a job after the call's end changes nothing.
 * 4. A job with a definition or tool that this process does not know is left to other processes: it is tried again, there or
 *    here.
 */
export async function runToolJob(dependencies: ToolJobDependencies, job: ToolJob, run: JobRun): Promise<JobOutcome> {
  const waiting = await waitingCall(dependencies, job);
  if (!waiting || (await isOfOthers(dependencies, waiting))) return "done";
  const known = await knownCall(dependencies, waiting);
  const tool = known && toolOf(known);
  if (!known || !tool) return await leaveToOthers(dependencies, waiting, known, run);
  if (isStubbed(known.record, tool)) {
    await abortable(post(dependencies, waiting, endOfResult(notRunStubbed(tool.name))), run.signal);
    return "done";
  }
  // The definition of this process may give the tool another effect class than that of the agent's owner.
  if (!isRunHere(known.record, tool, known.call.gate)) {
    await abortable(post(dependencies, waiting, endOfResult(notRun(tool.name))), run.signal);
    return "done";
  }
  const auth = await authOf(dependencies, known, tool);
  if (tool.auth === "required" && auth?.credentials === undefined) {
    const text = `The tool "${tool.name}" was not run: it needs credentials, and the worker of its queue "${run.queue}" has none. Set resolveAuth in its runtime, because credentials are never sent to workers.`;
    await abortable(post(dependencies, waiting, endOfResult(errorResult(text, "auth_missing"))), run.signal);
    return "done";
  }
  const { processId, leaseMs, clock } = dependencies;
  await dependencies.present();
  const claim = { callId: job.callId, attempt: job.attempt, processId, leaseMs };
  const claimed = await dependencies.stores.claimCall(waiting.key, claim, clock.elapsed());
  if (claimed.type === "over" || claimed.type === "refused") return "done";
  const name = `${waiting.key.agentId}/${queuedCallKey(job)}`;
  const own = ownWork(dependencies);
  // The process that started the call posts its end, unless it is this process and has no record of the call.
  if (claimed.type === "taken" && (own.has(name) || (claimed.isAlive && claimed.by.processId !== processId))) {
    dependencies.lookAtTimers();
    return "done";
  }
  own.add(name);
  if (claimed.type === "claimed") faultPoint("tool.claimed");
  const lost = claimed.type === "taken" ? "its process ended while it ran" : null;
  const posting = endOf(dependencies, known, { tool, auth, signal: run.signal, lost })
    .then((end) => post(dependencies, waiting, end))
    .finally(() => own.delete(name));
  posting.catch(() => undefined);
  // If the job is given up meanwhile, the call's end is still posted.
  await abortable(posting, run.signal);
  faultPoint("tool.posted");
  return "done";
}

function ownWork(dependencies: ToolJobDependencies): Set<string> {
  const own = atWork.get(dependencies) ?? new Set();
  atWork.set(dependencies, own);
  return own;
}

/** Local queues contain only jobs of their own process's agents: if another process owns the agent, it also has the job. */
async function isOfOthers(
  { queues, stores, live, processId }: ToolJobDependencies,
  { key }: WaitingCall,
): Promise<boolean> {
  if (queues.kind !== "local" || live.get(key)) return false;
  const holder = await stores.holder(key);
  return holder !== undefined && holder.process.processId !== processId;
}

/**
 * Leaves the job to other processes, which may know the definition or tool. With local queues there are none, so the tool is
 * gone.
 */
async function leaveToOthers(
  dependencies: ToolJobDependencies,
  waiting: WaitingCall,
  known: KnownCall | undefined,
  { queue, signal }: JobRun,
): Promise<JobOutcome> {
  const { record, queued } = waiting;
  const { name } = record.definition;
  if (!known && dependencies.definitions.has(name)) return "done";
  if (dependencies.queues.kind === "local") {
    await abortable(post(dependencies, waiting, endOfGone(waiting.queued, known?.call.name)), signal);
    return "done";
  }
  const what = known ? `tool "${known.call.name}" of agent definition "${name}"` : `agent definition "${name}"`;
  throw new StoreUnavailableError(`a worker of the queue "${queue}" does not know ${what}, for call ${queued.callId}`);
}

/** Credentials that this process has from the turn, or that the program resolves now. */
async function authOf(
  { auth }: ToolJobDependencies,
  { key, turn }: KnownCall,
  tool: Tool<never>,
): Promise<Auth | undefined> {
  const { turnId, actorId } = turn;
  const here = auth.of(turnId);
  if (actorId === null || here?.credentials !== undefined) return here;
  const reason = tool.auth === "required" ? "tool" : "restart";
  const asked = await auth.ask({ actorId, agentId: key.agentId, turnId, reason });
  return asked ? concealCredentials(asked) : (here ?? { actorId });
}

interface RunOfTool {
  readonly tool: Tool<never>;
  readonly auth: Auth | undefined;
  readonly signal: AbortSignal;
  /** Why the process of a started call that must not be repeated did not end it; `null` if the call must be run. */
  readonly lost: string | null;
}

/** Runs the tool's code once; rejects if the signal was aborted before it ended. */
async function endOf(dependencies: ToolJobDependencies, known: KnownCall, run: RunOfTool): Promise<CallEnd> {
  const { call } = known;
  const { tool, auth, signal, lost } = run;
  const left: LeftByRun = { artifacts: [], spawns: [] };
  const at = queuedAttempt(dependencies, known, { auth, redact: dependencies.auth.redactorFor(auth), left });
  const guarded = async (end: AttemptEnd): Promise<AttemptEnd> => {
    if (end.type !== "settled") return end;
    const { clock, contextOf } = at;
    const contextOfGuard = (): GuardContext => contextOf(signal);
    const guarding = {
      definition: known.definition,
      clock,
      contextOf: contextOfGuard,
      signal,
      maxCharacters: tool.maxOutputCharacters,
    };
    return { ...end, result: await guardedResult(guarding, call, end.result) };
  };
  if (lost !== null) {
    const result = await reconcileCall(at, call, tool, lost, signal);
    return callEndOf(call.name, await guarded({ type: "settled", result }), left);
  }
  try {
    const output = await executeTool(at, call, tool, signal);
    faultPoint("tool.body");
    return callEndOf(call.name, await guarded(endOfOutput(at, call, tool, output)), left);
  } catch (error) {
    if (signal.aborted) throw error;
    return callEndOf(call.name, await guarded(await endOfError(at, call, tool, error, signal)), left);
  }
}

/** Retries posting until the stores can be reached or the runtime is shut down, because the result is stored nowhere else. */
async function post(dependencies: ToolJobDependencies, waiting: WaitingCall, end: CallEnd): Promise<void> {
  const { clock, closed } = dependencies;
  await untilReached(() => postOnce(dependencies, waiting, end), { clock, random: Math.random, signal: closed });
}

async function postOnce(dependencies: ToolJobDependencies, { key, queued }: WaitingCall, end: CallEnd): Promise<void> {
  const { turnId, step, callId, attempt } = queued;
  const item = { kind: "call.ended", key: callEndedKey(queued), at: dependencies.clock.now() } as const;
  const { posted } = await dependencies.stores.postCallEnd(key, { ...item, turnId, step, callId, attempt, end });
  dependencies.notify(posted);
}

/**
 * Posts the end of a call whose job was given up. If the call was started and must not be repeated, `reconcile` is called, or the
 * outcome is unknown; otherwise the call gets an error. It is not tried again.
 */
export async function onDeadJob(dependencies: ToolJobDependencies, job: Job, cause: DeadCause): Promise<void> {
  if (job.kind !== "tool") return;
  const waiting = await waitingCall(dependencies, job);
  if (!waiting) return;
  const known = await knownCall(dependencies, waiting);
  if (!known && dependencies.definitions.has(waiting.record.definition.name)) return;
  await postOnce(dependencies, waiting, await endOfDead(dependencies, waiting, known, cause));
}

async function endOfDead(
  dependencies: ToolJobDependencies,
  waiting: WaitingCall,
  known: KnownCall | undefined,
  cause: DeadCause,
): Promise<CallEnd> {
  const tool = known && toolOf(known);
  const { claimedBy, isRepeatable } = waiting.queued;
  const why = deadJobReason(cause);
  if (claimedBy === null) {
    if (!tool && cause.code === "failed") return endOfGone(waiting.queued, known?.call.name);
    return endOfResult(errorResult(`The tool was not run: ${why}.`, `job_${cause.code}`));
  }
  const isReconciled = known && tool && isOnce(tool, known.call) && isRunHere(known.record, tool, known.call.gate);
  if (isReconciled && !isStubbed(known.record, tool)) return await reconciled(dependencies, known, tool, why);
  if (isRepeatable) return endOfResult(errorResult(`Error: ${why}. It is not tried again.`, `job_${cause.code}`));
  return endOfResult(unknownResult(known?.call.name ?? "a tool", why));
}

/** Calls `reconcile`, within the tool's own time limit. */
async function reconciled(
  dependencies: ToolJobDependencies,
  known: KnownCall,
  tool: Tool<never>,
  why: string,
): Promise<CallEnd> {
  const auth = await authOf(dependencies, known, tool);
  const timed = combineSignals([dependencies.closed]);
  const cancel = dependencies.clock.setDelay(tool.timeoutMs, () => timed.abort(new Error("it did not answer in time")));
  try {
    return await endOf(dependencies, known, { tool, auth, signal: timed.signal, lost: why });
  } finally {
    cancel();
    timed.dispose();
  }
}

/** The end of an attempt, with the results that the agent's owner must write. */
function callEndOf(name: string, end: AttemptEnd, left: LeftByRun): CallEnd {
  if (end.type === "retrying") return end;
  const { spawns, artifacts } = left;
  if (end.type === "awaiting") {
    const { childId, prefix } = end.child;
    return { type: "ordered", spawns, awaits: childId, artifacts, ...(prefix === undefined ? {} : { prefix }) };
  }
  if (end.type === "asking") {
    const text = `Error: the queued tool "${name}" returned a question, which only a tool without a queue may ask.`;
    return endOfResult(errorResult(text, "unsupported"), left);
  }
  const [spawn] = spawns;
  if (spawn && end.result.outcome === "success" && !end.stop) {
    const text = `Error: the queued tool "${name}" spawned the subagent "${spawn.key}" without returning run.await(child), so the subagent was not started. Other effects of the tool may have happened.`;
    return endOfResult(errorResult(text, "not_awaited"), left);
  }
  const settled = endOfResult(end.result, left);
  return end.stop ? { ...settled, stop: end.stop } : settled;
}

function endOfResult(result: CallResult, left?: LeftByRun) {
  const { outcome, text, images = [], files = [], structured, error, artifact, fileArtifacts = [] } = result;
  const artifacts = [...(left?.artifacts ?? []), ...fileArtifacts, ...(artifact ? [artifact] : [])];
  return {
    type: "settled" as const,
    outcome,
    text,
    ...(images.length > 0 ? { images: [...images] } : {}),
    ...(files.length > 0 ? { files: [...files] } : {}),
    ...(structured === undefined ? {} : { structured }),
    error: error ?? null,
    ...(artifacts.length > 0 ? { artifacts } : {}),
    ...(artifact ? { artifactId: artifact.artifactId } : {}),
  };
}

/** Calls of stubbed sessions enter no queue: this one was added by a process that did not know of the stubs. */
function notRunStubbed(name: string): CallResult {
  return errorResult(`The tool ${name} was not run: the session is stubbed.`, "stubbed", "denied");
}

/** The end of a call whose tool is gone, so that the agent can continue without it. */
function endOfGone(queued: QueuedCall, name: string | undefined): CallEnd {
  const text = `The tool ${name === undefined ? "of this call" : `"${name}"`} is not available any more.`;
  const isOpen = queued.claimedBy !== null && !queued.isRepeatable;
  return endOfResult(errorResult(text, "tool_unavailable", isOpen ? "outcome_unknown" : "error"));
}

/** The reason why a job was given up, for the model. */
function deadJobReason({ code, message, deaths }: DeadCause): string {
  switch (code) {
    case "worker_died":
      return deaths > 1
        ? `${deaths} workers died or stopped responding while they ran it`
        : "its worker died or stopped responding while it ran it";
    case "timed_out":
      return "its job did not end in time";
    case "stopped":
      return "its worker was stopped while it ran it";
    default:
      return message.replace(/\.$/, "");
  }
}
