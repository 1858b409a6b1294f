import { backoffDelay } from "../base/index.ts";
import { ModelError } from "../errors/index.ts";
import type { ModelAnswer } from "../model/index.ts";
import { callIdOf, type EntryOf, type OpenRequest, stepMetadata, type TurnState, type Usage } from "../state/index.ts";
import { COMPACTIONS_WITHOUT_PROGRESS, tooLong } from "./compact.ts";
import { appendWarnings, type Host } from "./host.ts";
import { billOf, costOf, settlementOf, unconfirmedSettlement } from "./model-cost.ts";
import { lastCallSignal, writerOf } from "./prompt.ts";
import { storedErrorOf } from "./stored-error.ts";

/** Settles a call of a lost owner: nobody knows whether it was answered (design, Budgets). */
export function abandonRequest(host: Host, turn: TurnState, open: OpenRequest): void {
  const settlement = unconfirmedSettlement(open.reservation);
  host.append(
    {
      type: "model.failed",
      turnId: turn.turnId,
      step: open.step,
      attempt: open.attempt,
      model: open.model,
      error: { code: "interrupted", message: "the process ended while the call was in flight", retryable: true },
      retryAt: host.clock.now(),
      usage: null,
      settlement,
    },
    { moves: [{ type: "settle", settlement }] },
  );
}

/** Appends the answer, its message and its settlement. */
export function respond(
  host: Host,
  granted: EntryOf<"model.requested">,
  { response, warnings }: ModelAnswer,
  durationMs: number,
): void {
  const { turnId, step, attempt, messageId, price, reservation } = granted;
  if (!reservation) return;
  const calls = response.toolCalls.map(({ id, name, arguments: text }, index) => ({
    callId: callIdOf(turnId, step, index),
    providerId: id,
    name,
    arguments: text,
  }));
  const isInternal = (name: string): boolean => host.definition.tools.get(name)?.kind === "internal";
  const settlement = settlementOf(reservation, response.usage, price);
  const isFinal = calls.length === 0;
  const costMicros = costOf(response.usage, price);
  // Before the answer, so that its calls never begin.
  if (granted.last && !isFinal) {
    const signal = lastCallSignal(granted.last, response.usage, costMicros);
    host.append({ type: "stop.signalled", turnId, signal });
  }
  host.append(
    {
      type: "model.responded",
      turnId,
      step,
      attempt,
      model: response.model,
      messageId,
      hasText: response.content !== "",
      calls: calls.map(({ callId, name }) => ({
        callId,
        name,
        ...(isInternal(name) ? { internal: true as const } : {}),
      })),
      usage: response.usage,
      costMicros,
      finishReason: response.finishReason,
      durationMs: Math.max(0, Math.round(durationMs)),
      settlement,
    },
    {
      messages: [
        {
          id: messageId,
          role: "assistant",
          createdAt: granted.at,
          content: response.content,
          origin: "model",
          metadata: stepMetadata(host.identity.agentId, { turnId, step, isTrace: !isFinal }),
          ...(isFinal ? {} : { toolCalls: calls }),
          ...(response.reasoning
            ? { reasoning: response.reasoning, reasoningBy: writerOf(host.definition.model) }
            : {}),
        },
      ],
      moves: [{ type: "settle", settlement }],
    },
  );
  noteUsage(host, granted, response.usage);
  appendWarnings(host, turnId, warnings);
}

/** The next prompt is counted from the provider's count of this one. */
function noteUsage(host: Host, { messageId, last }: EntryOf<"model.requested">, usage: Usage): void {
  // The last call of a budget carries a note, so its prompt is not the one that was measured.
  const isMeasured = usage.estimated !== true && last === undefined;
  if (isMeasured) host.notes.prompts.noteAnswered(messageId, usage.inputTokens);
}

/** Appends the failed attempt, settled by what it may have cost; true when another attempt follows. */
export function failAttempt(host: Host, granted: EntryOf<"model.requested">, error: unknown): boolean {
  const { turnId, step, attempt, model, reservation } = granted;
  if (!reservation) return false;
  const known = error instanceof ModelError ? error : undefined;
  const stored = storedErrorOf(error);
  const isTooLong = stored.code === "context_length";
  const compactions = host.turn(turnId)?.compactions ?? 0;
  const compacts = isTooLong && host.definition.autoCompact !== null && compactions < COMPACTIONS_WITHOUT_PROGRESS;
  const isTransient = known?.retryable ?? false;
  const retries = compacts || (isTransient && attempt < host.definition.maxModelAttempts);
  const delay = compacts ? 0 : (known?.retryAfterMs ?? backoffDelay(attempt, host.random()));
  const { usage, settlement } = billOf(error, granted.ask, reservation);
  host.append(
    {
      type: "model.failed",
      turnId,
      step,
      attempt,
      model,
      error:
        isTooLong && !retries
          ? { ...stored, code: "context_too_long", message: `${tooLong(compactions)} (${stored.message})` }
          : stored,
      retryAt: retries ? host.clock.now() + delay : null,
      ...(isTransient && !retries ? { isExhausted: true as const } : {}),
      usage,
      settlement,
    },
    { moves: [{ type: "settle", settlement }] },
  );
  return retries;
}

/** Appends the end of a call that a pause with `now` has dropped: it is made again after the pause. */
export function dropAttempt(host: Host, granted: EntryOf<"model.requested">, outputTokens: number | undefined): void {
  const { turnId, step, attempt, model, reservation, ask, price } = granted;
  if (!reservation) return;
  const usage =
    outputTokens === undefined ? null : { inputTokens: ask.promptTokens, outputTokens, estimated: true as const };
  const settlement = usage ? settlementOf(reservation, usage, price) : unconfirmedSettlement(reservation);
  const error = {
    code: "paused",
    message: "the call was dropped by a pause; it is repeated after it",
    retryable: true,
  };
  const retryAt = host.clock.now();
  host.append(
    { type: "model.failed", turnId, step, attempt, model, error, retryAt, usage, settlement },
    { moves: [{ type: "settle", settlement }] },
  );
}

/** Names one attempt of one model call. */
export function requestKeyOf(request: {
  readonly turnId?: string;
  readonly messageId: string;
  readonly attempt: number;
}): string {
  return `${request.messageId}:${request.attempt}`;
}
