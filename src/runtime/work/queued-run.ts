import { type AttemptDependencies, artifactOf, notSpawned, percentOfWindow, runAgentOf } from "../../actors/index.ts";
import { type AgentDefinition, assertGiven } from "../../agents/index.ts";
import { type Clock } from "../../base/index.ts";
import { UnsupportedError } from "../../errors/index.ts";
import { type OrderedSpawn, promptOf, settledCallsOf, textOf, traceEntriesOf } from "../../state/index.ts";
import type { NewArtifact, Stores } from "../../stores/index.ts";
import {
  type Auth,
  AwaitedChild,
  type CheckedSpawn,
  checkedSpawn,
  type RunContext,
  type SpawnedChild,
  storedContent,
} from "../../tools/index.ts";
import type { LiveBroadcast } from "../follow/event-bus.ts";
import type { KnownCall } from "../agent/call-queue.ts";
import { childIdOfSpawn } from "../agent/intents.ts";

export interface QueuedRunDependencies {
  readonly stores: Stores;
  readonly clock: Clock;
  readonly definitions: ReadonlyMap<string, AgentDefinition>;
  readonly broadcast: Pick<LiveBroadcast, "viewersOf">;
}

/** Results of a tool's code that only the agent's owner may write; they are stored with the call's end. */
export interface LeftByRun {
  readonly artifacts: NewArtifact[];
  readonly spawns: OrderedSpawn[];
}

export interface QueuedRunParts {
  readonly auth: Auth | undefined;
  readonly redact: (text: string) => string;
  readonly left: LeftByRun;
}

/** Builds the environment for a call's code in a process that may not own the agent, from data read from the stores. */
export function queuedAttempt(
  dependencies: QueuedRunDependencies,
  known: KnownCall,
  { auth, redact, left }: QueuedRunParts,
): AttemptDependencies {
  const { clock } = dependencies;
  const { record, turn, call, entries, definition, messages } = known;
  const { turnId, step, callId } = call;
  const prompt = promptOf(entries, (id) => textOf(messages.get(id)?.content ?? ""));
  const viewers = dependencies.broadcast.viewersOf(record);
  const notHere = (what: string, why: string): UnsupportedError =>
    new UnsupportedError(`run.${what}() was called in the queued tool "${call.name}": ${why}. Remove the queue`);
  const refuseToSchedule = async (): Promise<never> => {
    throw notHere("schedules", "only the process that owns its agent can schedule its turns");
  };
  const contextOf = (signal: AbortSignal): RunContext => ({
    agent: runAgentOf({ identity: record }),
    turnId,
    step,
    callId,
    attempt: call.attempt,
    prompt,
    previousTools: settledCallsOf(entries),
    get trace() {
      return traceEntriesOf(entries, prompt, (id) => messages.get(id));
    },
    auth,
    actorId: turn.actorId,
    contextPercent: percentOfWindow(turn, definition.model.contextWindow),
    signal,
    idempotencyKey: callId,
    progress: (update) => viewers.showProgress(call, update),
    generate: async () => {
      throw new UnsupportedError(
        `run.generate() was called in the queued tool "${call.name}": a model call spends the budget of its agent, which may be in another process. Remove the queue, or start a subagent: return run.await(await run.spawn(…))`,
      );
    },
    saveArtifact: async ({ name, contentType, content }) => {
      const artifact = artifactOf(dependencies, call, {
        name,
        contentType,
        ...storedContent({ contentType, content }),
      });
      const before = await dependencies.stores.artifactByName(known.key, name);
      const saved = left.artifacts.filter((one) => one.name === name).length;
      left.artifacts.push(artifact);
      return { artifactId: artifact.artifactId, version: (before?.version ?? 0) + saved + 1 };
    },
    artifact: async (idOrName) => {
      const { stores } = dependencies;
      return (await stores.artifact(known.key, idOrName)) ?? (await stores.artifactByName(known.key, idOrName));
    },
    artifacts: async () => await dependencies.stores.artifacts(known.key),
    spawn: async (child, input, options) => orderSpawn(dependencies, known, left, child, checkedSpawn(input, options)),
    await: (child, { prefix } = {}) => {
      if (left.spawns.some(({ childId }) => childId === child?.agentId)) return new AwaitedChild(child.agentId, prefix);
      throw notSpawned(child, "call");
    },
    noted: call.note,
    answer: null,
    note: async () => {
      throw notHere("note", "only the process that owns its agent can write the note");
    },
    ask: () => {
      throw notHere("ask", "only the process that owns its agent can open the request");
    },
    bill: async () => {
      throw notHere("bill", "only the process that owns its agent can charge its accounts");
    },
    schedules: { add: refuseToSchedule, list: refuseToSchedule, cancel: refuseToSchedule },
  });
  return { clock, redact, contextOf };
}

/** Records a child that the code spawns; the same key returns the same child. */
function orderSpawn(
  { definitions }: QueuedRunDependencies,
  { record, call }: KnownCall,
  { spawns }: LeftByRun,
  definition: unknown,
  { key, input, limits, history }: CheckedSpawn,
): SpawnedChild {
  assertGiven(definitions, definition, "run.spawn()");
  const agentId = childIdOfSpawn(record, call.turnId, `${call.callId}:${key}`);
  if (!spawns.some(({ childId }) => childId === agentId)) {
    spawns.push({ key, childId: agentId, definition: definition.name, input, limits, ...(history ? { history } : {}) });
  }
  const refusal = new UnsupportedError(
    `the queued tool "${call.name}" waits for the result of its subagent "${key}": that would block its worker until the subagent ends. Return run.await(child)`,
  );
  const result: SpawnedChild["result"] = Promise.reject(refusal);
  // Code that does not await the result must not cause an unhandled rejection.
  result.catch(() => undefined);
  return { agentId, result };
}
