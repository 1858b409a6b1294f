import type { LimitName } from "../budget/index.ts";
import { textOf as contentText } from "./content-text.ts";
import type { LimitFigures } from "./entry-parts.ts";
import type { Entry, EntryOf } from "./entry.ts";
import type { TroupeEvent, TroupeEventBody } from "./event.ts";
import type { TextLookup } from "./react-inputs.ts";
import { limitsChangeText, limitText, warningText } from "./limit-reached.ts";
import type { AgentIdentity } from "./record.ts";

/** The agent of an event: the fixed part of its record. */
export type EventSource = Pick<AgentIdentity, "agentId" | "parentAgentId" | "rootAgentId" | "sessionId" | "definition">;

/**
 * The durable public events of one committed entry, in order. A pure function, so that a stream can continue from any cursor without gaps
 * or duplicates. Needs neither Node nor zod, because web pages fold stored entries too.
 */
export function eventsOf(entry: Entry, source: EventSource, rowCursor: number, textOf: TextLookup): TroupeEvent[] {
  return bodiesOf(entry, textOf).map((body, index) => ({
    ...body,
    agentId: source.agentId,
    agentName: source.definition.name,
    parentAgentId: source.parentAgentId,
    rootAgentId: source.rootAgentId,
    sessionId: source.sessionId,
    turnId: "turnId" in entry && entry.turnId !== undefined ? entry.turnId : null,
    step: stepOf(entry, body),
    at: entry.at,
    cursor: cursorText({ row: rowCursor, seq: entry.seq, index }),
  }));
}

/** The position of a durable event: the commit's row, the entry, and the event's index within that entry. */
export interface EventCursor {
  readonly row: number;
  readonly seq: number;
  readonly index: number;
}

export function cursorText({ row, seq, index }: EventCursor): string {
  return `${row}.${seq}.${index}`;
}

/** Parses a cursor; `undefined` if the text is invalid. */
export function parseCursor(text: string): EventCursor | undefined {
  const match = /^(\d{1,15})\.(\d{1,15})\.(\d{1,4})$/.exec(text);
  return match ? { row: Number(match[1]), seq: Number(match[2]), index: Number(match[3]) } : undefined;
}

function stepOf(entry: Entry, body: TroupeEventBody): number | null {
  if (!("step" in entry)) return null;
  return body.type === "step.completed" ? entry.step - 1 : entry.step;
}

function bodiesOf(entry: Entry, textOf: TextLookup): TroupeEventBody[] {
  switch (entry.type) {
    case "agent.starting":
      return [{ type: "lifecycle.changed", status: "starting" }];
    case "agent.started":
      return [{ type: "lifecycle.changed", status: "ready" }];
    case "agent.paused":
      return [{ type: "lifecycle.changed", status: "paused" }];
    case "agent.resumed":
      return [{ type: "lifecycle.changed", status: entry.to }];
    case "agent.shutdown":
      return [{ type: "lifecycle.changed", status: "shutdown" }];
    case "warning":
      return [{ type: "warning", code: entry.code, message: entry.message }];
    case "turn.started":
      return [
        { type: "lifecycle.changed", status: "busy" },
        {
          type: "turn.started",
          number: entry.number,
          prompt: entry.inputMessageIds.map(textOf).join("\n"),
          ...(entry.trace ? { trace: entry.trace } : {}),
        },
      ];
    case "turn.steered": {
      const { messageId, content, actorId, inputKey } = entry;
      const key = inputKey ? { key: inputKey.text } : {};
      return [{ type: "turn.steered", messageId, prompt: contentText(content), actorId, ...key }];
    }
    case "output.checked": {
      const { callId, messageId, valid } = entry;
      return callId !== undefined && valid ? [{ type: "turn.answered", callId, messageId }] : [];
    }
    case "turn.ended":
      return endEvents(entry, textOf);
    case "model.requested":
      return requestEvents(entry);
    case "model.responded":
      return [
        {
          type: "model.responded",
          model: entry.model,
          usage: entry.usage,
          costMicros: entry.costMicros,
          toolCalls: entry.calls.length,
          durationMs: entry.durationMs,
          finishReason: entry.finishReason,
        },
      ];
    case "model.failed":
      return restartEvents(entry);
    case "tool.started":
      return [startedEvent(entry)];
    case "tool.settled":
      return entry.internal ? [startedEvent({ ...entry, attempt: 1 }), settledEvent(entry)] : [settledEvent(entry)];
    case "child.spawned":
      return [
        {
          type: "subagent.spawned",
          callId: entry.callId ?? null,
          childId: entry.childId,
          definition: entry.definition.name,
          mode: entry.background ? "background" : "await",
        },
      ];
    case "child.ended":
      return [endedEvent(entry, "await")];
    case "child.reported":
      return [endedEvent(entry, "background")];
    case "artifact.saved": {
      const { artifactId, name, version = 1, contentType, size } = entry;
      return [{ type: "artifact.saved", artifactId, name, version, contentType, size }];
    }
    case "request.opened": {
      const { requestId, kind, callId, name, prompt, expiresAt } = entry;
      return [{ type: "request.opened", requestId, kind, callId, name, prompt, expiresAt }];
    }
    case "request.decided": {
      const { requestId, kind, callId, name, verdict, by, reason } = entry;
      return [{ type: "request.decided", requestId, kind, callId, name, verdict, by, reason }];
    }
    case "conversation.cleared":
      return [{ type: "conversation.cleared", by: entry.by, scope: entry.scope }];
    case "turn.waiting":
      return [{ type: "turn.waiting", reason: "request" }];
    case "context.compacted": {
      const { strategy, messages, summaryMessageId } = entry;
      return [{ type: "context.compacted", strategy, messages, hasSummary: summaryMessageId !== null }];
    }
    case "budget.warning": {
      const { accountId, limit, used, max } = entry;
      return [{ type: "budget.warning", accountId, limit, used, max, message: warningText(entry) }];
    }
    case "budget.changed": {
      const { accountId, by, limits } = entry;
      return [{ type: "budget.changed", accountId, by, limits, message: limitsChangeText(entry) }];
    }
    case "intent.refused":
      return refusalEvents(entry);
    case "budget.freed": {
      if (!entry.decided) return [];
      const { requestId, callId, name, verdict, by, reason } = entry.decided;
      return [{ type: "request.decided", requestId, kind: "budget", callId, name, verdict, by, reason }];
    }
    case "timer.due": {
      const { accountId, limit, message } = entry.signal;
      return accountId && limit ? [exhaustedEvent(accountId, limit, { ...entry.signal, message })] : [];
    }
    default:
      return [];
  }
}

function requestEvents(entry: EntryOf<"model.requested">): TroupeEventBody[] {
  const { attempt, step, model, provider, last, settings } = entry;
  const said =
    last &&
    `the last permitted model call, in which no tool may be called: ${limitText(last.limit, last.accountId, last)}`;
  const told: TroupeEventBody[] = said === undefined ? [] : [{ type: "warning", code: "last_call", message: said }];
  if (attempt > 1) return told;
  const chosen = provider === undefined ? { model } : { model, provider };
  const started: TroupeEventBody = { type: "step.started", ...chosen, ...(settings ? { settings } : {}) };
  return step > 1 ? [{ type: "step.completed" }, started, ...told] : [started, ...told];
}

function restartEvents({ attempt, error, retryAt, next }: EntryOf<"model.failed">): TroupeEventBody[] {
  if (retryAt === null) return [];
  const other = next ? { model: next.model, provider: next.provider } : {};
  return [{ type: "step.restarted", attempt: attempt + 1, error, retryAt, ...other }];
}

type Beginning = Pick<EntryOf<"tool.started">, "callId" | "name" | "attempt" | "queue">;

function startedEvent({ callId, name, attempt, queue }: Beginning): TroupeEventBody {
  return { type: "tool.started", callId, name, attempt, ...(queue === undefined ? {} : { queue }) };
}

function settledEvent(entry: EntryOf<"tool.settled">): TroupeEventBody {
  const { callId, name, outcome, durationMs, error, structured } = entry;
  const data = structured === undefined ? {} : { structured };
  if (outcome === "success") return { type: "tool.completed", callId, name, durationMs, ...data };
  return { type: "tool.failed", callId, name, outcome, durationMs, error, ...data };
}

function endedEvent(
  { childId, outcome, stopReason }: EntryOf<"child.ended" | "child.reported">,
  mode: "await" | "background",
): TroupeEventBody {
  return { type: "subagent.ended", childId, mode, outcome, stopReason };
}

function refusalEvents(entry: EntryOf<"intent.refused">): TroupeEventBody[] {
  if (entry.reason === "budget" && entry.accountId && entry.limit) {
    const message = limitText(entry.limit, entry.accountId, entry);
    return [exhaustedEvent(entry.accountId, entry.limit, { ...entry, message })];
  }
  if (entry.reason === "paused") return [{ type: "turn.waiting", reason: "paused" }];
  if (entry.request) {
    return [
      { type: "request.opened", ...entry.request, kind: "budget", expiresAt: null },
      { type: "turn.waiting", reason: "request" },
    ];
  }
  if (entry.reason === "mustWait") return [{ type: "turn.waiting", reason: "budget" }];
  return [];
}

function exhaustedEvent(
  accountId: string,
  limit: LimitName,
  { used, max, message }: Pick<LimitFigures, "used" | "max"> & { readonly message: string },
): TroupeEventBody {
  const figures = { ...(used === undefined ? {} : { used }), ...(max === undefined ? {} : { max }) };
  return { type: "budget.exhausted", accountId, limit, ...figures, message };
}

function endEvents(entry: EntryOf<"turn.ended">, textOf: TextLookup): TroupeEventBody[] {
  const { stopReason, steps, toolCalls, usage, costMicros, error } = entry;
  const text = entry.outputMessageId === null ? "" : textOf(entry.outputMessageId);
  const message = entry.signal?.message ?? null;
  const end = { stopReason, text, steps, toolCalls, usage, costMicros, message };
  const ended: TroupeEventBody =
    entry.outcome === "failed"
      ? { type: "turn.failed", ...end, error }
      : { type: entry.outcome === "stopped" ? "turn.stopped" : "turn.completed", ...end };
  const status: TroupeEventBody = { type: "lifecycle.changed", status: entry.lifecycle };
  return [ended, status];
}
