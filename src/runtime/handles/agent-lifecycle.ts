import { type AgentDefinition, assertGiven, DEFAULT_MAX_DEPTH, grantOf } from "../../agents/index.ts";
import { backoffDelay } from "../../base/index.ts";
import {
  agentAccountId,
  bindingField,
  bindingOf,
  type BudgetChange,
  limitsChangeOf,
  limitsOf,
  turnFlagsOf,
} from "../../budget/index.ts";
import {
  AgentBusyError,
  AlreadyOwnedError,
  InvalidInputError,
  LeaseLostError,
  NotFoundError,
  PolicyRefusedError,
} from "../../errors/index.ts";
import { type AgentKey, type AgentRecord, rootOf } from "../../state/index.ts";
import { assertBudgetSet } from "../../stores/index.ts";
import type { Auth } from "../../tools/index.ts";
import type { Activation } from "../agent/activation.ts";
import { childIdOfSpawn } from "../agent/intents.ts";
import { wakeUp } from "../agent/intake.ts";
import type { RuntimeCore } from "../core/runtime-core.ts";
import { pauseOptionsOf } from "../api/agent-options.ts";
import type { PauseOptions, SpawnAgentOptions } from "../api/agent-types.ts";
import { requestsBelow } from "../follow/rest-watch.ts";

/** Maximum number of attempts to get an agent that another process owns briefly: about ten seconds. */
const MOST_TRIES = 12;
const pauses = { baseMs: 50, capMs: 1_000 };

/** `start()` in a process that runs no agents: only makes a created or shut down agent ready. */
export async function startElsewhere(core: RuntimeCore, key: AgentKey): Promise<AgentRecord> {
  const record = await readKnown(core, key);
  if (record.openTurnId !== null) core.notify([key.agentId]);
  if (!isAsleep(record) || record.openTurnId !== null) return record;
  await changeElsewhere(core, key, (activation) => wakeUp(activation));
  return await readKnown(core, key);
}

/** `shutdown()` in a process that runs no agents. Throws `AgentBusyError` while a turn is open, because workers continue it. */
export async function shutDownElsewhere(core: RuntimeCore, key: AgentKey): Promise<void> {
  const record = await readKnown(core, key);
  if (record.openTurnId !== null) {
    throw new AgentBusyError(
      `agent "${key.agentId}" is busy with turn ${record.openTurnId}, which workers continue; wait for it, abort it, or pause the agent with pause()`,
      { details: { openTurnId: record.openTurnId } },
    );
  }
  if (isAsleep(record)) return;
  await changeElsewhere(core, key, (activation) => activation.append({ type: "agent.shutdown" }));
}

/**
 * Changes an agent between two turns, whichever process owns it, by taking its lease briefly. Throws `AgentBusyError` while a
 * turn is open, `AlreadyOwnedError` if another process does not release it.
 */
export async function changeElsewhere(
  core: RuntimeCore,
  key: AgentKey,
  change: (activation: Activation) => void,
): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await core.live.change(key, change);
    } catch (error) {
      const isTaken = error instanceof AlreadyOwnedError || error instanceof LeaseLostError;
      if (!isTaken || attempt >= MOST_TRIES || !core.isOpen) throw error;
      if (error instanceof AlreadyOwnedError) await core.stores.wantLease(key, core.clock.now());
    }
    await core.clock.sleep(backoffDelay(attempt, 0.5, pauses));
  }
}

/** Resolves when an agent with a pause flag has come to rest in any process, or when the flag is removed. */
export async function pausedElsewhere(core: RuntimeCore, key: AgentKey): Promise<void> {
  let moved = Promise.withResolvers<void>();
  const look = (): void => moved.resolve();
  const ends = [core.onForeignWrite(look), core.bus.listenToRows(look, rootOf(key.agentId))];
  core.closed.addEventListener("abort", look, { once: true });
  try {
    for (;;) {
      moved = Promise.withResolvers<void>();
      const record = await core.stores.readAgent(key);
      if (!record || record.pause === null || record.openTurnId === null || record.status === "paused") return;
      core.closed.throwIfAborted();
      await moved.promise;
    }
  } finally {
    core.closed.removeEventListener("abort", look);
    for (const end of ends) end();
  }
}

function isAsleep({ status }: AgentRecord): boolean {
  return status === "created" || status === "shutdown";
}

async function readKnown(core: RuntimeCore, key: AgentKey): Promise<AgentRecord> {
  const record = await core.stores.readAgent(key);
  if (record) return record;
  throw new NotFoundError(`there is no agent "${key.agentId}"`);
}

/** Pauses the agent and its subtree; resolves when this agent is at rest and the whole tree is saved. */
export async function pauseAndSave(core: RuntimeCore, key: AgentKey, given?: PauseOptions): Promise<void> {
  const options = pauseOptionsOf(given);
  core.assertOpen();
  const { stores, clock, live } = core;
  const outcome = await stores.pause(key, "user", clock.now(), { ...options, steady: clock.elapsed() });
  if (outcome.type === "notFound") throw new NotFoundError(`there is no agent "${key.agentId}"`);
  const activation = await live.present(key);
  if (activation) await live.drainInbox(activation);
  const isElsewhere = !activation && live.isOthers(key);
  const others = outcome.posted.filter((agentId) => agentId !== key.agentId);
  live.notify(isElsewhere ? [key.agentId, ...others] : others);
  if (activation) {
    await core.paused(activation);
    if (!activation.isLost) await activation.committed();
  }
  if (isElsewhere) await pausedElsewhere(core, key);
  await stores.save(key);
}

/** Commits open entries, saves, and removes the agent and all agents below it from this process's memory. */
export async function shutDownAndSave(core: RuntimeCore, key: AgentKey): Promise<void> {
  // No work starts after this call in the agent or below it, not even while it waits for the stores.
  core.live.shut(key);
  const live = await core.live.present(key);
  if (live) core.live.shut(key);
  if (live) {
    // An open turn stays open; the next start() continues it.
    if (live.openTurnId === null) {
      live.append({ type: "agent.shutdown" });
      live.writer.leave();
    }
    await live.committed();
    await core.live.leave(live);
  } else if (core.part.role !== "all") await shutDownElsewhere(core, key);
  else core.live.disown(key);
  await core.live.leaveBelow(key);
  await core.stores.letGo(key);
}

/** Changes limits of the agent's life; returns the agents that have new inbox items. */
export async function setBudget(core: RuntimeCore, key: AgentKey, given: BudgetChange): Promise<readonly string[]> {
  core.assertOpen();
  const { stores, clock, bus } = core;
  const change = limitsChangeOf(given, clock.now());
  const outcome = await stores.setBudget(key, { change, by: "user" }, clock.now(), clock.elapsed());
  assertBudgetSet(key.agentId, outcome);
  if (outcome.type === "unchanged") return [];
  bus.publishAccounts([outcome.account]);
  core.noteTimers(outcome.timers);
  return outcome.posted;
}

/** Waits until all entries of the agent's tree are committed, and saves the tree if it has no `autoSave`. */
export async function saveState(core: RuntimeCore, key: AgentKey): Promise<void> {
  core.assertOpen();
  const root = rootOf(key.agentId);
  const ofTree = core.live.all().filter(({ identity, isLost }) => identity.rootAgentId === root && !isLost);
  await Promise.all(ofTree.map((activation) => activation.committed()));
  await core.stores.save(key);
}

/** Deletes the messages, and with `all` the artifacts too. Throws `AgentBusyError` while a turn is open. */
export async function clearAgent(core: RuntimeCore, key: AgentKey, scope: "conversation" | "all"): Promise<void> {
  core.assertOpen();
  // Checked in the record first: activating the agent would continue its open turn, and a turn that a pause prevents from
  // starting is only in the record.
  assertIdle(key, (await core.stores.readAgent(key))?.openTurnId);
  if (core.part.role !== "all")
    return await changeElsewhere(core, key, (activation) => activation.clear(scope, "user"));
  const live = await core.live.own(key);
  assertIdle(key, live.openTurnId);
  live.clear(scope, "user");
  await live.committed();
}

function assertIdle({ agentId }: AgentKey, openTurnId: string | null | undefined): void {
  if (openTurnId === null || openTurnId === undefined) return;
  throw new AgentBusyError(`agent "${agentId}" is busy with turn ${openTurnId}; wait for it, or abort it first`, {
    details: { openTurnId },
  });
}

/**
 * Passes credentials to every turn of the agent's tree that requested them. They stay in this process, so the turn must continue
 * here.
 */
export async function provideAuth(core: RuntimeCore, agentId: string, auth: Auth): Promise<void> {
  const below = await requestsBelow(core.stores, core.tenant, agentId);
  const requests = below.filter(({ kind }) => kind === "auth");
  const foreign = requests.find(({ actorId }) => actorId !== null && actorId !== auth.actorId);
  if (foreign) {
    throw new InvalidInputError(
      `turn ${foreign.turnId} belongs to actor "${foreign.actorId}"; credentials of "${auth.actorId}" were rejected`,
    );
  }
  for (const { requestId, turnId } of requests) {
    const decide = { verdict: "provided", by: auth.actorId } as const;
    await core.requests.decide(requestId, decide, () => core.auth.keep(turnId, auth));
  }
}

/** Creates a child for user code; the same key returns the same child. */
export async function createChild(
  core: RuntimeCore,
  parent: AgentRecord,
  definition: AgentDefinition,
  options: SpawnAgentOptions,
): Promise<AgentRecord> {
  assertGiven(core.definitions, definition, "agent.spawn()");
  const depth = parent.depth + 1;
  const maxDepth = Math.min(parent.maxDepth, DEFAULT_MAX_DEPTH);
  if (depth > maxDepth) {
    throw new PolicyRefusedError(`a subagent here would be at depth ${depth}; the policy allows ${maxDepth}`);
  }
  const agentId = childIdOfSpawn(parent, "", options.key);
  const accountId = agentAccountId(agentId);
  const limits = limitsOf(options.budget);
  const { tenant, rootAgentId, sessionId, ownerId, accountId: parentAccountId } = parent;
  const { record } = await core.stores.createAgent(
    {
      tenant,
      agentId,
      rootAgentId,
      parentAgentId: parent.agentId,
      parentTurnId: null,
      parentStep: null,
      parentCallId: null,
      depth,
      definition: definition.ref,
      ownerId,
      sessionId,
      createdAt: core.clock.now(),
      accountId,
      parentAccountId,
      ...bindingField(bindingOf(limits, parent.binding)),
      ...grantOf({ definition, policy: {} }, parent.deniedTools),
      maxDepth,
      turnLimits: turnFlagsOf(limits),
      metadata: {},
      ...(parent.forkedFrom ? { forkedFrom: parent.forkedFrom } : {}),
      ...(parent.stubs ? { stubs: parent.stubs } : {}),
    },
    { id: accountId, agentId, turnId: null, parentId: parentAccountId, limits },
    { definition: definition.stored },
  );
  return record;
}
