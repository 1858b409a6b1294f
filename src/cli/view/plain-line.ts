import type { RequestKind, TroupeEvent, TroupeEventOf } from "../../state/index.ts";
import { shortAgentId, formatCached, formatCount, formatDuration, formatNumberOf } from "./format.ts";
import { verdictTexts } from "./request-lines.ts";
import { oneLine } from "./terminal-text.ts";
import { truncate } from "./text-width.ts";

const longestQuote = 120;

/** An event as one line; `undefined` for events without a line. Times count from `startedAt`. */
export function plainLine(event: TroupeEvent, startedAt: number): string | undefined {
  const text = eventText(event);
  if (text === undefined) return undefined;
  const time = formatDuration(Math.max(0, event.at - startedAt)).padStart(8);
  return `${time}  ${event.agentName} ${shortAgentId(event.agentId)}: ${text}`;
}

/** The text of an event, without its time and agent. */
export function eventText(event: TroupeEvent): string | undefined {
  switch (event.type) {
    case "turn.started":
      return `begins ${quote(event.prompt)}`;
    case "model.responded":
      return [
        `step ${event.step ?? 0}: ${formatCount(event.usage.inputTokens + event.usage.outputTokens)} tokens`,
        formatCached(event.usage),
        event.toolCalls === 0 ? "no tool calls" : formatNumberOf(event.toolCalls, "tool call"),
      ]
        .filter((part) => part !== undefined)
        .join(", ");
    case "step.restarted":
      return `tries step ${event.step ?? 0} again${event.model === undefined ? "" : ` with ${oneLine(event.model)}`} (attempt ${event.attempt}): ${oneLine(event.error.message)}`;
    case "tool.completed":
      return `${event.name} took ${formatDuration(event.durationMs)}`;
    case "tool.failed":
      return `${event.name} failed (${event.outcome})${event.error === null ? "" : `: ${oneLine(event.error.message)}`}`;
    case "subagent.spawned":
      return event.mode === "background"
        ? `starts ${event.definition} ${shortAgentId(event.childId)} in the background`
        : `asks ${event.definition} ${shortAgentId(event.childId)}`;
    case "artifact.saved":
      return `saves ${oneLine(event.name)} (${formatCount(event.size)} bytes)`;
    default:
      return stateText(event);
  }
}

function stateText(event: TroupeEvent): string | undefined {
  switch (event.type) {
    case "turn.completed":
      return `done after ${formatNumberOf(event.steps, "step")}`;
    case "turn.stopped":
      return `stopped (${event.stopReason})${event.message === null ? "" : `: ${oneLine(event.message)}`}`;
    case "turn.failed":
      return `failed${event.error === null ? "" : `: ${oneLine(event.error.message)} (${event.error.code})`}`;
    case "turn.steered":
      return `gets another input: ${quote(event.prompt)}`;
    case "turn.waiting":
      return waitingTexts[event.reason];
    case "request.opened":
      return `${askings[event.kind]}: ${quote(event.prompt)} (${event.requestId})`;
    case "request.decided":
      return decidedText(event);
    case "context.compacted":
      return `compacts its context: ${formatNumberOf(event.messages, "message")} ${
        event.hasSummary ? "summarised" : "left out"
      } (${oneLine(event.strategy)})`;
    case "lifecycle.changed":
      return event.status === "paused" ? "paused" : undefined;
    case "budget.warning":
      return `budget nearly used up: ${oneLine(event.message)}`;
    case "budget.changed":
      return `budget changed: ${oneLine(event.message)}`;
    case "budget.exhausted":
      return `budget used up: ${oneLine(event.message)}`;
    case "warning":
      return `warning: ${oneLine(event.message)} (${event.code})`;
    default:
      return undefined;
  }
}

const waitingTexts: Readonly<Record<TroupeEventOf<"turn.waiting">["reason"], string | undefined>> = {
  budget: "waits for budget that other calls have reserved",
  request: "waits for a decision or an answer",
  paused: undefined,
};

const askings: Readonly<Record<RequestKind, string>> = {
  approval: "asks for approval",
  client: "asks its caller to run",
  question: "asks",
  auth: "asks for credentials",
  budget: "asks for more budget",
};

/** `pay was approved by anna`, `pay was rejected by anna: too much`, `pay: no decision in time`. */
function decidedText({ name, verdict, by, reason }: TroupeEventOf<"request.decided">): string {
  if (verdict === "expired") return `${name}: no decision in time`;
  const who = by === null ? "" : ` by ${oneLine(by)}`;
  const why = reason === null || reason === "" ? "" : `: ${oneLine(reason)}`;
  return `${name} was ${verdictTexts[verdict]}${who}${why}`;
}

function quote(text: string): string {
  return `“${truncate(oneLine(text), longestQuote)}”`;
}
