import { assertGiven } from "../agents/index.ts";
import { faultPoint, waitingOn } from "../base/index.ts";
import { PolicyRefusedError } from "../errors/index.ts";
import {
  type CallState,
  settledCallsOf,
  stepsOf,
  traceEntriesOf,
  type TraceEntry,
  turnIdOf,
  type TurnState,
  type Usage,
} from "../state/index.ts";
import {
  AskedRequest,
  type BillInput,
  type CheckedSpawn,
  checkedSpawn,
  type RunAgent,
  type RunContext,
  type SpawnedChild,
  storedContent,
  type ToolAnswer,
} from "../tools/index.ts";
import { generateFor } from "./generate.ts";
import { assertOpenTurn, type Host, onLive } from "./host.ts";
import { awaitedChildOf, policyRefusal } from "./child-rules.ts";
import { artifactOf } from "./tool-calls.ts";

/** The run context passed to a tool. */
export function runContextOf(host: Host, call: CallState, signal: AbortSignal): RunContext {
  const { turnId, step, callId } = call;
  let generate: RunContext["generate"] | undefined;
  let noted = call.note;
  const spawned = new Set<string>();
  return {
    agent: runAgentOf(host),
    turnId,
    step,
    callId,
    attempt: Math.max(1, call.attempt),
    prompt: host.memory(turnId).prompt,
    get previousTools() {
      return settledCallsOf(host.memory(turnId).entries);
    },
    get trace() {
      return traceOf(host, turnId);
    },
    auth: host.auth(turnId),
    actorId: host.turn(turnId)?.actorId ?? null,
    contextPercent: contextPercentOf(host, host.turn(turnId)),
    signal,
    idempotencyKey: callId,
    progress: (update) => host.viewers.showProgress(call, update),
    generate: (request) => (generate ??= generateFor(host, turnId, step, callId, signal))(request),
    async saveArtifact({ name, contentType, content }) {
      return await onLive(host, async (live) => {
        assertOpenTurn(live, turnId);
        const artifact = artifactOf(live, call, { name, contentType, ...storedContent({ contentType, content }) });
        const { artifactId, size } = artifact;
        live.append(
          { type: "artifact.saved", turnId, step, callId, artifactId, name, contentType, size },
          { artifacts: [artifact] },
        );
        await live.committed();
        return { artifactId, version: live.notes.versionOf(artifactId) };
      });
    },
    artifact: async (idOrName) =>
      await onLive(host, async (live) => (await live.artifact(idOrName)) ?? (await live.artifactByName(idOrName))),
    artifacts: async () => await onLive(host, async (live) => await live.artifacts()),
    async spawn(definition, input, options) {
      const child = await onLive(host, (live) => spawnByCode(live, call, definition, checkedSpawn(input, options)));
      spawned.add(child.agentId);
      return child;
    },
    await: (child, options) => awaitedChildOf({ host, turnId, spawned }, child, options),
    get noted() {
      return noted;
    },
    answer: answerOf(call),
    note: async (note) => {
      await onLive(host, async (live) => {
        assertOpenTurn(live, turnId);
        live.append({ type: "tool.noted", turnId, step, callId, note });
        await live.committed();
      });
      faultPoint("tool.noted");
      noted = note;
    },
    ask: (question) => new AskedRequest(question),
    bill: async (use) => await onLive(host, (live) => bill(live, call, use)),
    schedules: host.schedulesOf(call),
  };
}

/** The decision on the last question of the call's code; `null` if it has not asked. */
function answerOf({ decision }: CallState): ToolAnswer | null {
  if (!decision?.asked) return null;
  const { requestId, kind, verdict, reason, by, result } = decision;
  return { requestId, kind, verdict, reason, by, text: result?.text ?? "" };
}

/** Counts external usage of the call, once per key. */
async function bill(host: Host, { turnId, step, callId }: CallState, use: BillInput): Promise<void> {
  const turn = host.turn(turnId);
  const { key, model, inputTokens, outputTokens, cost } = use;
  const entries = [...host.memory(turnId).entries, ...host.undelivered()];
  const isKnown = entries.some((entry) => entry.type === "tool.billed" && entry.callId === callId && entry.key === key);
  if (!turn || isKnown) return await host.committed();
  const usage = { inputTokens, outputTokens };
  // Nothing was reserved for it, because it is known only afterwards.
  const reservation = {
    accountId: turn.accountId,
    tokens: 0,
    costMicros: 0,
    outputTokens: Math.max(1, outputTokens),
    model,
    ...(cost === undefined ? { isUnpriced: true } : {}),
  };
  const settlement = {
    reservation,
    tokens: inputTokens + outputTokens,
    costMicros: Math.round((cost ?? 0) * 1_000_000),
    usage,
    unconfirmed: false,
  };
  host.append(
    { type: "tool.billed", turnId, step, callId, key, usage, settlement },
    { moves: [{ type: "settle", settlement }] },
  );
  await host.committed();
}

/** Starts a child from a tool's code; the same key within one call returns the same child, also after a restart. */
async function spawnByCode(
  host: Host,
  call: CallState,
  definition: unknown,
  { key, input, limits, history }: CheckedSpawn,
): Promise<SpawnedChild> {
  assertGiven(host.definitions, definition, "run.spawn()");
  const tool = { definition, limits, policy: {}, background: null, ...(history ? { history } : {}) };
  const forbidden = policyRefusal(host, call.turnId, tool);
  if (forbidden) throw new PolicyRefusedError(forbidden);
  const { turnId, step, callId } = call;
  assertOpenTurn(host, turnId);
  const outcome = await host.proposeSpawn({ turnId, step, callId: null, key: `${callId}:${key}`, tool, input });
  if (!outcome.granted) {
    throw new PolicyRefusedError(
      `no subagent was started: ${outcome.entry.reason} ${outcome.entry.limit ?? ""}`.trim(),
    );
  }
  const { childId } = outcome.entry;
  const result = host.child(turnId, childId);
  return {
    agentId: childId,
    get result() {
      return waitingOn(host.clock, () => result);
    },
  };
}

/** The agent, as exposed to hooks and tools. */
export function runAgentOf(host: Pick<Host, "identity">): RunAgent {
  const { agentId, parentAgentId, rootAgentId, depth, sessionId, tenant, ownerId, definition } = host.identity;
  return { agentId, name: definition.name, parentAgentId, rootAgentId, depth, sessionId, tenant, ownerId };
}

/** The trace of the open turn, derived from its entries. */
export function traceOf(host: Host, turnId: string): TraceEntry[] {
  const { entries, prompt } = host.memory(turnId);
  return traceEntriesOf(entries, prompt, (id) => host.message(id));
}

/**
 * How full the model's window was after the last answer, in percent, possibly above 100; `null` if its size is unknown or there
 * was no answer yet.
 */
export function contextPercentOf(host: Host, turn: TurnState | undefined): number | null {
  const { contextWindow } = host.definition.model;
  if (!turn) return null;
  const before = turn.number > 1 ? host.turn(turnIdOf(host.identity.agentId, turn.number - 1)) : undefined;
  return percentOfWindow(turn, contextWindow) ?? (before ? percentOfWindow(before, contextWindow) : null);
}

/** After the turn's last answer; `null` before the first answer, or if the window's size is unknown. */
export function percentOfWindow(turn: TurnState, contextWindow: number | undefined): number | null {
  const usage = lastUsageOf(turn);
  if (!usage || contextWindow === undefined) return null;
  return ((usage.inputTokens + usage.outputTokens) / contextWindow) * 100;
}

function lastUsageOf(turn: TurnState): Usage | undefined {
  return stepsOf(turn.execution).findLast(({ inference }) => inference !== null)?.inference?.usage;
}
