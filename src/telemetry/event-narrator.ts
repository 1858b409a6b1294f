import type { Redactor } from "../base/index.ts";
import type { TroupeEvent, TroupeEventOf, Usage } from "../state/index.ts";
import { costText, countText, durationText, oneLine } from "./plain-text.ts";

interface KnownAgent {
  readonly label: string;
  readonly parentAgentId: string | null;
}

interface Narration {
  readonly at: number;
  readonly rootAgentId: string;
  /** The agent's path and a description of the event, on one line. */
  readonly text: string;
}

/** Frequent events that are not logged. */
const silentTypes: ReadonlySet<TroupeEvent["type"]> = new Set([
  "text.delta",
  "text.snapshot",
  "reasoning.delta",
  "call.delta",
  "output.delta",
  "budget.forecast",
]);

/** Longer than the path in the deepest tree. */
const longestPath = 64;

/**
 * Formats events as lines.
 * Owns: the known agents, and the start times of their open turns. Removes both at their end.
 */
export class EventNarrator {
  readonly #redactor: Redactor;
  readonly #content: boolean;
  readonly #agents = new Map<string, KnownAgent>();
  readonly #startedAt = new Map<string, number>();

  constructor(redactor: Redactor, content: boolean) {
    this.#redactor = redactor;
    this.#content = content;
  }

  tell(event: TroupeEvent): Narration | undefined {
    if (silentTypes.has(event.type)) return undefined;
    this.#learn(event);
    const durationMs = this.#durationOf(event);
    const redacted = this.#redactor.value(event) as TroupeEvent;
    const text = eventText(redacted, { content: this.#content, durationMs });
    const path = this.#pathOf(event.agentId);
    if (event.type === "subagent.ended") this.#agents.delete(event.childId);
    if (event.type === "lifecycle.changed" && event.status === "shutdown") this.#agents.delete(event.agentId);
    return text === undefined ? undefined : { at: event.at, rootAgentId: event.rootAgentId, text: `${path}  ${text}` };
  }

  #learn({ agentId, agentName, parentAgentId }: TroupeEvent): void {
    if (this.#agents.has(agentId)) return;
    const name = oneLine(this.#redactor.text(agentName), 80);
    // The start of the hash distinguishes subagents of one definition.
    const id = parentAgentId === null ? `@${agentId}` : `~${agentId.slice(agentId.indexOf("~") + 1).slice(0, 4)}`;
    this.#agents.set(agentId, { label: name + this.#redactor.text(id), parentAgentId });
  }

  #durationOf(event: TroupeEvent): number | undefined {
    if (event.turnId === null) return undefined;
    if (event.type === "turn.started") this.#startedAt.set(event.turnId, event.at);
    if (event.type !== "turn.completed" && event.type !== "turn.stopped" && event.type !== "turn.failed")
      return undefined;
    const startedAt = this.#startedAt.get(event.turnId);
    this.#startedAt.delete(event.turnId);
    return startedAt === undefined ? undefined : event.at - startedAt;
  }

  /** `lead@desk-7/reader~3f2a`; `…/reader~3f2a` if no event of its parent was received. */
  #pathOf(agentId: string): string {
    const labels: string[] = [];
    for (let id: string | null = agentId; id !== null && labels.length < longestPath; ) {
      const agent: KnownAgent | undefined = this.#agents.get(id);
      labels.unshift(agent?.label ?? "…");
      id = agent?.parentAgentId ?? null;
    }
    return labels.join("/");
  }
}

interface EventTextOptions {
  /** Includes prompts, answers, questions and progress, cut to one line. Default false. */
  readonly content?: boolean | undefined;
  /** Duration of the ending turn in milliseconds, if known. */
  readonly durationMs?: number | undefined;
}

const longestText = 200;
const longestName = 80;

/** The text of an event for a log; `undefined` for events that are not logged. Redact the event first. */
export function eventText(event: TroupeEvent, options: EventTextOptions = {}): string | undefined {
  const said = (text: string): string =>
    options.content === true && text !== "" ? `: “${oneLine(text, longestText)}”` : "";
  switch (event.type) {
    case "turn.started":
      return `turn ${event.number} began${said(event.prompt)}`;
    case "turn.completed":
    case "turn.stopped":
    case "turn.failed":
      return `${endText(event, options.durationMs)}${said(event.text)}`;
    case "turn.steered":
      return `got another input for step ${event.step}${said(event.prompt)}`;
    case "turn.waiting":
      return `waits: ${waitsFor[event.reason]}`;
    case "request.opened":
      return `asks for ${requested[event.kind]} (${named(event)}), request ${event.requestId}${said(event.prompt)}`;
    case "request.decided":
      return `request ${event.requestId} was ${event.verdict}${event.by === null ? "" : ` by ${oneLine(event.by, longestName)}`}`;
    case "lifecycle.changed":
      return event.status === "paused" || event.status === "shutdown" ? event.status : undefined;
    case "subagent.spawned":
      return `spawned ${oneLine(event.definition, longestName)} ${event.childId}`;
    case "subagent.ended":
      return `subagent ${event.childId} ${event.outcome} (${event.stopReason})`;
    case "artifact.saved":
      return `saved artifact ${oneLine(event.name, longestName)}, version ${event.version}, ${countText(event.size, "byte")}`;
    case "context.compacted":
      return `compacted its context (${event.strategy}): ${countText(event.messages, "message")} less${event.hasSummary ? ", with a summary" : ""}`;
    case "budget.warning":
      return `budget nearly used up: ${oneLine(event.message, longestText)}`;
    case "budget.changed":
      return `budget changed by ${oneLine(event.by, longestName)}: ${oneLine(event.message, longestText)}`;
    case "budget.exhausted":
      return `budget used up: ${oneLine(event.message, longestText)}`;
    case "warning":
      return `warning ${event.code}: ${oneLine(event.message, longestText)}`;
    default:
      return stepText(event, options.content === true);
  }
}

const waitsFor = {
  paused: "it is paused",
  budget: "others have reserved the budget",
  request: "for an answer",
} as const;

const requested = {
  approval: "approval",
  client: "the result of a tool of the caller",
  question: "an answer",
  auth: "credentials",
  budget: "more budget",
} as const;

function stepText(event: TroupeEvent, content: boolean): string | undefined {
  const text = bodyText(event, content);
  return text === undefined || event.step === null ? text : `step ${event.step}: ${text}`;
}

function bodyText(event: TroupeEvent, content: boolean): string | undefined {
  switch (event.type) {
    case "step.restarted":
      return `tries again${event.model === undefined ? "" : ` with ${oneLine(event.model, longestName)}`} (attempt ${event.attempt}) after ${event.error.code}: ${oneLine(event.error.message, longestText)}`;
    case "model.responded":
      return `${oneLine(event.model, longestName)} answered in ${durationText(event.durationMs)}: ${tokensText(event.usage)}, ${costText(event.costMicros)}, ${countText(event.toolCalls, "tool call")}`;
    case "tool.started":
      return `${named(event)} started${event.attempt > 1 ? ` (attempt ${event.attempt})` : ""}`;
    case "tool.progress":
      return content ? `${named(event)} reports ${oneLine(JSON.stringify(event.update), longestText)}` : undefined;
    case "tool.completed":
      return `${named(event)} took ${durationText(event.durationMs)}`;
    case "tool.failed":
      return `${named(event)} failed after ${durationText(event.durationMs)} (${event.outcome})${
        event.error === null ? "" : `: ${oneLine(event.error.message, longestText)}`
      }`;
    default:
      return undefined;
  }
}

function endText(
  event: TroupeEventOf<"turn.completed" | "turn.stopped" | "turn.failed">,
  durationMs: number | undefined,
): string {
  const { type, steps, toolCalls, usage, costMicros, stopReason } = event;
  const error = type === "turn.failed" ? event.error : null;
  const why = error ? `${error.code}: ${error.message}` : (event.message ?? stopReason);
  const status = type.slice("turn.".length);
  return [
    `turn ${status}${durationMs === undefined ? "" : ` in ${durationText(durationMs)}`}`,
    countText(steps, "step"),
    countText(toolCalls, "tool call"),
    tokensText(usage),
    costText(costMicros),
    ...(type === "turn.completed" ? [] : [oneLine(why, longestText)]),
  ].join(", ");
}

function tokensText({ inputTokens, cachedInputTokens = 0, outputTokens, estimated }: Usage): string {
  const cached = cachedInputTokens > 0 ? ` with ${cachedInputTokens} cached` : "";
  return `${estimated === true ? "about " : ""}${inputTokens + outputTokens} tokens (${inputTokens} in${cached}, ${outputTokens} out)`;
}

/** A model may have made up the name of a tool. */
function named(event: { readonly name: string }): string {
  return oneLine(event.name, longestName);
}
