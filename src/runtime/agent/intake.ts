import {
  type FactParts,
  isTooLate,
  reportIdOf,
  reportMessage,
  saveArtifacts,
  settleEnded,
} from "../../actors/index.ts";
import { backoffDelay } from "../../base/index.ts";
import { turnAccountId } from "../../budget/index.ts";
import {
  type CallEndedItem,
  type ChildReportedItem,
  type DefinitionRef,
  type Entry,
  type EntryOf,
  type InboxItem,
  isIntent,
  type Message,
  numberOfTurn,
  type SteerItem,
  STUB_MISMATCH_CODE,
  type StopSignal,
  type StoredError,
  turnIdOf,
  type TurnItem,
  type TurnState,
} from "../../state/index.ts";
import { stepOfInput } from "../../machines/index.ts";
import type { Activation } from "./activation.ts";

/**
 * Records an inbox item in the journal. The batch with its entries acknowledges the item, so that it is neither lost nor taken
 * twice. Returns false if it cannot be taken yet; it then stays in the inbox.
 */
export function takeItem(activation: Activation, item: InboxItem): boolean {
  switch (item.kind) {
    case "turn":
      // A turn that has ended does not start again.
      if (item.number > activation.owned.turnCount && !beginTurn(activation, item)) return false;
      break;
    case "steer":
      if (isAsleep(activation) || isOfComingTurn(activation, item.turnId)) return false;
      takeSteer(activation, item);
      break;
    case "child.ended":
      takeChildEnded(activation, item);
      break;
    case "child.reported":
      if (isAsleep(activation)) return false;
      takeReport(activation, item);
      break;
    case "pause":
      if (isAsleep(activation)) return false;
      pauseAgent(activation, item.by, item.now);
      break;
    case "resume":
      if (isAsleep(activation)) return false;
      takeResume(activation, item.by);
      break;
    case "abort":
      if (isOfComingTurn(activation, item.turnId)) return false;
      takeAbort(activation, item);
      break;
    case "budget.freed":
      if (activation.openTurnId !== null) {
        const decided = item.decided ? { decided: item.decided } : {};
        activation.append({ type: "budget.freed", turnId: activation.openTurnId, ...decided });
      }
      break;
    case "budget.changed":
      if (isAsleep(activation)) return false;
      takeBudget(activation, item);
      break;
    case "lease.wanted":
      break;
    case "budget.warning":
      takeWarning(activation, item);
      break;
    case "decision":
      takeDecision(activation, item);
      break;
    case "call.ended":
      if (!takeCallEnd(activation, item)) return false;
      break;
    default:
      item satisfies never;
  }
  activation.writer.acknowledge(item.key);
  return true;
}

function beginTurn(activation: Activation, item: TurnItem): boolean {
  const { lifecycle, definition, identity, clock, waking, writer } = activation;
  if (activation.openTurnId !== null || writer.isClosingTurn) return false;
  if (lifecycle !== "ready" && lifecycle !== "failed") return false;
  const { turnId, number, actorId } = item;
  const message: Message | undefined =
    item.input === null
      ? undefined
      : { id: `${turnId}:in`, role: "user", content: item.input, createdAt: clock.now(), origin: actorId ?? "user" };
  const accountId = turnAccountId(turnId);
  const limits = { ...definition.limits, ...identity.turnLimits, ...item.limits };
  const granted = identity.grantedTools;
  const { contextWindowSize } = definition.history;
  const clientTools = (definition.clientTools && item.clientTools) || [];
  // Inputs that this turn was opened for are its own, so that no further turn is opened for them.
  const left = waking.filter(({ messageId }) => item.inputMessageIds?.includes(messageId) !== true);
  if (item.steerId !== undefined) activation.adopt(item.steerId, turnId);
  const { conversation = [] } = item;
  if (conversation.length > 0) {
    const messageIds = conversation.map(({ id }) => id);
    activation.append({ type: "conversation.seeded", messageIds }, { messages: conversation });
  }
  activation.append(
    {
      type: "turn.started",
      turnId,
      number,
      inputMessageIds: message ? [message.id] : (item.inputMessageIds ?? []),
      actorId,
      definition: definition.ref,
      model: { name: definition.model.name, provider: definition.model.provider },
      tools: [
        ...(granted ? definition.grantedTools.filter(({ name }) => granted.includes(name)) : definition.grantedTools),
        ...clientTools.map(({ name }) => ({ name, kind: "client", effect: "once" }) as const),
      ],
      ...(clientTools.length > 0 ? { clientTools: [...clientTools] } : {}),
      ...(item.settings ? { settings: item.settings } : {}),
      limits,
      accountId,
      maxConsecutiveToolFailures: definition.maxConsecutiveToolFailures,
      hooks: definition.hookCounts,
      ...(definition.output ? { checksOutput: true } : {}),
      ...(contextWindowSize === undefined ? {} : { contextWindowSize }),
      ...(item.wokenBy === undefined ? {} : { wokenBy: item.wokenBy }),
      ...(item.trace ? { trace: item.trace } : {}),
      // A turn started by reports already answers them; any other turn must do so.
      ...(item.wokenBy === undefined && left.length > 0 ? { waking: left } : {}),
    },
    {
      messages: message ? [message] : [],
      definition: unlessKept(activation),
      moves: [
        {
          type: "open",
          account: {
            id: accountId,
            agentId: identity.agentId,
            turnId,
            parentId: item.parentAccountId ?? identity.accountId ?? identity.parentAccountId,
            limits,
          },
        },
      ],
    },
  );
  if (item.clientTools && !definition.clientTools) {
    const message = `definition "${definition.name}" no longer allows client tools: the turn continues without them`;
    activation.append({ type: "warning", turnId, code: "client_tools_refused", message });
  }
  return true;
}

/**
 * Takes in an input for the open turn: its message is held until the next model call. An input that no call of the turn will see opens a
 * turn instead, and so does the input of another actor, because a turn runs with the credentials of one.
 */
function takeSteer(activation: Activation, item: SteerItem): void {
  const { turnId, steerId, input, actorId, inputKey } = item;
  const turn = activation.openTurnId === turnId ? activation.turn(turnId) : undefined;
  const undelivered = activation.undelivered();
  const isEnding = undelivered.some(({ type }) => type === "stop.signalled" || type === "turn.ended");
  const isOthers = actorId !== null && actorId !== turn?.actorId;
  const isMissed = (of: TurnState): boolean =>
    undelivered.some(({ type }) => type === "model.requested") || isTooLate(activation, of);
  const step = turn && !isEnding && !isOthers ? stepOfInput(turn, activation.values().turn, isMissed(turn)) : null;
  if (step === null) return activation.writer.defer(item);
  const arrived = [...activation.turnEntries, ...undelivered].filter(({ type }) => type === "turn.steered").length;
  activation.append({
    type: "turn.steered",
    turnId,
    step,
    steerId,
    ...(inputKey ? { inputKey } : {}),
    messageId: `${turnId}:in:${arrived + 1}`,
    content: input,
    actorId,
  });
}

function takeChildEnded(activation: Activation, item: Extract<InboxItem, { kind: "child.ended" }>): void {
  if (activation.openTurnId !== item.parentTurnId) return;
  const {
    parentTurnId: turnId,
    step,
    callId,
    childId,
    childTurnId,
    outcome,
    stopReason,
    text,
    error,
    leavesWork,
  } = item;
  activation.append({
    type: "child.ended",
    turnId,
    step,
    ...(callId === null ? {} : { callId }),
    childId,
    childTurnId,
    outcome,
    stopReason,
    text,
    error,
    ...(leavesWork ? { leavesWork } : {}),
  });
  failByStub(activation, turnId, error);
}

/** A call of a subagent that no stub answers fails the turns of all agents above it. */
function failByStub(activation: Activation, turnId: string, error: StoredError | null): void {
  if (!activation.identity.stubs || error?.code !== STUB_MISMATCH_CODE) return;
  activation.append({ type: "effect.failed", turnId, effect: "settleChild", error });
}

/** Records that one of the agent's own limits is near. A warning for an ended turn's account is dropped. */
function takeWarning(activation: Activation, item: Extract<InboxItem, { kind: "budget.warning" }>): void {
  const { definition, key, openTurnId, owned } = activation;
  const turnId = openTurnId ?? turnIdOf(key.agentId, owned.turnCount);
  const { accountId, limit, used, max } = item;
  if (openTurnId === null && (owned.turnCount === 0 || accountId === turnAccountId(turnId))) return;
  const holder = { name: definition.name, kinship: "own" } as const;
  activation.append({ type: "budget.warning", turnId, accountId, limit, used, max, holder });
}

/**
 * The account already has the new limits; the journal records the change, and the next call is checked against the current
 * limits.
 */
function takeBudget(activation: Activation, item: Extract<InboxItem, { kind: "budget.changed" }>): void {
  const { change, binding } = item;
  activation.rebind(binding, change?.limits);
  if (!change) return;
  const turnId = activation.openTurnId === null ? {} : { turnId: activation.openTurnId };
  activation.append({ type: "budget.changed", ...turnId, ...change });
}

function takeDecision(activation: Activation, item: Extract<InboxItem, { kind: "decision" }>): void {
  const { requestId, turnId, callId, decision } = item;
  const turn = activation.openTurnId === turnId ? activation.turn(turnId) : undefined;
  // The call was interrupted and already has its result.
  if (!turn?.openRequestIds.includes(requestId)) return;
  const call = activation.call(turnId, callId);
  if (!call?.openRequest) return;
  const { kind } = call.openRequest;
  activation.append({
    type: "request.decided",
    turnId,
    step: call.step,
    callId,
    requestId,
    kind,
    name: call.name,
    ...decision,
  });
}

/** Pauses the agent; during a turn as soon as none of its calls is in flight. `now` drops the model call in flight. */
function pauseAgent(activation: Activation, by: string, now = false): void {
  const { lifecycle, openTurnId } = activation;
  if (lifecycle === "paused") return;
  if (!isHeld(activation)) {
    const turnId = openTurnId === null ? {} : { turnId: openTurnId };
    activation.append({ type: "agent.pausing", by, ...turnId, ...(now ? { now } : {}) });
    if (openTurnId === null) activation.append({ type: "agent.paused" });
  }
  if (now) activation.dropModelCall();
}

/** The end of a pause may arrive twice, from the command and from an abort; it is journalled once. */
function takeResume(activation: Activation, by: string): void {
  const { lifecycle, openTurnId } = activation;
  if ((lifecycle !== "paused" && lifecycle !== "busy") || isGoingOn(activation)) return;
  if (openTurnId === null) {
    activation.append({ type: "agent.resumed", by, to: "ready" });
    return;
  }
  activation.append({ type: "agent.resumed", by, to: "busy", turnId: openTurnId });
}

/** Before `start()` and after a shutdown, pauses, reports and inputs wait in the inbox. */
function isAsleep({ lifecycle }: Activation): boolean {
  return lifecycle === "created" || lifecycle === "shutdown";
}

/** Whether the abort or the input is for a turn that has not started; it is taken after the start. */
function isOfComingTurn({ openTurnId, owned }: Activation, turnId: string | null): boolean {
  return turnId !== null && turnId !== openTurnId && numberOfTurn(turnId) > owned.turnCount;
}

function takeAbort(activation: Activation, item: Extract<InboxItem, { kind: "abort" }>): void {
  const turnId = activation.openTurnId;
  if (turnId === null || (item.turnId !== null && item.turnId !== turnId)) return;
  const signal: StopSignal = {
    reason: item.stopReason,
    message: item.reason,
    source: item.isSuperseded ? "supersede" : item.by,
  };
  activation.append({ type: "stop.signalled", turnId, signal });
  // A batch that is too large for the stores must not prevent the turn's end, which may be small enough.
  activation.writer.giveUpRefused();
  // A paused agent runs no step, so it has to be resumed to end its turn.
  if (isHeld(activation)) takeResume(activation, item.by);
}

/** Whether the agent was resumed, and has neither been paused nor proposed an intent since. */
function isGoingOn(activation: Activation): boolean {
  const entries = [...activation.turnEntries, ...activation.undelivered()];
  const last = entries.findLast(
    (entry) =>
      isIntent(entry) ||
      entry.type === "intent.refused" ||
      entry.type === "agent.pausing" ||
      entry.type === "agent.resumed",
  );
  return last?.type === "agent.resumed";
}

/** Whether the agent is paused or will be: the pause's entry may wait behind an undecided intent. */
function isHeld(activation: Activation): boolean {
  const last = activation.undelivered().findLast(({ type }) => type === "agent.pausing" || type === "agent.resumed");
  if (last) return last.type === "agent.pausing";
  return activation.lifecycle === "paused" || activation.isPausing;
}

/**
 * Takes the end of a queued call that a worker posted. User code has already run, so only facts are appended. The end of an
 * outdated attempt changes nothing. Returns false if earlier entries of the call are undelivered.
 */
function takeCallEnd(activation: Activation, item: CallEndedItem): boolean {
  const { turnId, callId, step, attempt, end } = item;
  if (activation.openTurnId !== turnId) return true;
  if (activation.undelivered().some((entry) => "callId" in entry && entry.callId === callId)) return false;
  const call = activation.call(turnId, callId);
  if (!call || call.outcome !== null || call.queue === null || call.attempt !== attempt) return true;
  switch (end.type) {
    case "settled":
      settleEnded(activation, call, end);
      break;
    case "retrying": {
      const retryAt = activation.clock.now() + backoffDelay(attempt, activation.random());
      activation.append({ type: "tool.retrying", turnId, step, callId, attempt, error: end.error, retryAt });
      break;
    }
    case "ordered": {
      const { spawns, awaits, prefix } = end;
      saveArtifacts(activation, call, end.artifacts ?? []);
      const before = prefix === undefined ? {} : { prefix };
      activation.append({ type: "child.ordered", turnId, step, callId, spawns, awaits, ...before });
      break;
    }
    // The effect that withdrew the call settles it.
    case "withdrawn":
      break;
    default:
      end satisfies never;
  }
  return true;
}

/**
 * Takes the end of a background child. During an open turn its message is held until the next model call. Between turns it enters
 * the history immediately, and a report that wakes opens a turn in the same commit unless a turn is queued.
 */
function takeReport(activation: Activation, item: ChildReportedItem): void {
  const { openTurnId } = activation;
  const { childId, childTurnId, name, outcome, stopReason, text, error, actorId, onEnd, leavesWork } = item;
  const body = {
    type: "child.reported",
    ...(openTurnId === null ? {} : { turnId: openTurnId }),
    childId,
    childTurnId,
    name,
    outcome,
    stopReason,
    text,
    error,
    messageId: reportIdOf(childTurnId),
    actorId,
    // A child that a user ended does not wake its parent.
    wakes: onEnd === "wake" && stopReason !== "user_requested",
    ...(leavesWork ? { leavesWork } : {}),
  } as const;
  if (openTurnId !== null) {
    activation.append(body);
    failByStub(activation, openTurnId, error);
    return;
  }
  activation.append(body, {
    messages: [reportMessage(activation, body as unknown as EntryOf<"child.reported">, 1)],
    wake: body.wakes ? { childId, actorId } : undefined,
  });
}

/** Moves a created or shut down agent to `ready`, or to `paused` if its record has a pause; does nothing otherwise. */
export function wakeUp(activation: Activation, conversation: readonly Message[] = []): void {
  const { lifecycle, definition, identity } = activation;
  if (lifecycle !== "created" && lifecycle !== "shutdown") return;
  activation.append({ type: "agent.starting" });
  const parts = { messages: conversation, definition: unlessKept(activation) };
  activation.append({ type: "agent.started", definition: definition.ref }, parts);
  if (identity.pause) pauseAgent(activation, identity.pause.by);
}

/** Completes a start that a crash interrupted, and warns if the definition has changed during an open turn. */
export function carryOn(activation: Activation): void {
  const { lifecycle, definition, identity, openTurnId } = activation;
  const { ref } = definition;
  const parts = { definition: unlessKept(activation) };
  if (lifecycle === "starting") activation.append({ type: "agent.started", definition: ref }, parts);
  if (openTurnId === null) return;
  const isOfTurn = definitionOf(activation.turnEntries)?.hash === ref.hash;
  if (identity.definition.hash === ref.hash && isOfTurn) return;
  const message = `definition "${definition.name}" has changed since agent "${identity.agentId}" was created`;
  const changed = isOfTurn ? {} : { definition: ref };
  activation.append({ type: "warning", turnId: openTurnId, code: "definition_changed", message, ...changed }, parts);
}

/**
 * The definition to store with an entry that refers to it. The definition in the record was stored when the agent was created.
 */
function unlessKept({ identity, definition }: Activation): FactParts["definition"] {
  return identity.definition.hash === definition.ref.hash ? undefined : definition.stored;
}

/** The definition currently used by the turn of these entries. */
function definitionOf(turnEntries: readonly Entry[]): DefinitionRef | undefined {
  const last = turnEntries.findLast((entry) => "definition" in entry && entry.type !== "child.spawned");
  return last && "definition" in last ? last.definition : undefined;
}
