import { agentMachine, toolCallMachine, turnMachine } from "../../machines/index.ts";
import type { FrameEvent, FrameSnapshot } from "./frames.ts";

/*
 * The fields that an inspector may show: ids, counters, names and kinds. Prompts, arguments, results, error
 * texts and the user of a turn are hidden. Both lists are allowlists, so a new field is hidden until it is added.
 */

const contextFields = [
  "turnCount",
  "openTurnId",
  "lastTurnId",
  "openChildIds",
  "waitsForBudget",
  "turnId",
  "number",
  "startedAt",
  "accountId",
  "step",
  "attempt",
  "retryAt",
  "openCallIds",
  "roundCalls",
  "roundFailures",
  "consecutiveToolFailures",
  "appliedHooks",
  "toolCalls",
  "callId",
  "index",
  "name",
  "startedEpoch",
  "childId",
  "outcome",
] as const;

const eventFields = [
  "seq",
  "at",
  "epoch",
  "turnId",
  "callId",
  "step",
  "attempt",
  "number",
  "index",
  "name",
  "verdict",
  "kind",
  "effect",
  "hook",
  "plugin",
  "outcome",
  "intent",
  "reason",
  "limit",
  "accountId",
  "childId",
  "childTurnId",
  "stopReason",
  "finishReason",
  "retryAt",
  "durationMs",
  "timerId",
  "lifecycle",
] as const;

/** Limited, because a model may have written the name. */
const longestText = 200;
const mostItems = 100;

export function visibleSnapshot(snapshot: unknown): FrameSnapshot {
  const { status, value, context } = objectOf(snapshot);
  return {
    status: typeof status === "string" ? status : "active",
    ...(value === undefined ? {} : { value }),
    ...(context === undefined ? {} : { context: picked(foldIn(objectOf(context)), contextFields) }),
  };
}

/** The context of an agent, or the record inside the context of a turn or call. */
function foldIn(context: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return objectOf(context["turn"] ?? context["call"] ?? context);
}

export function visibleEvent(event: unknown): FrameEvent {
  const fields = objectOf(event);
  const { type } = fields;
  return { type: typeof type === "string" ? type : "", ...picked(fields, eventFields) };
}

/** Entries that no effect of the agent writes. People, timers, other accounts and the stores cause them. */
const fromOutside =
  /^(?:agent|conversation|budget|timer)\.|^(?:turn\.started|stop\.signalled|request\.decided|intent\.refused)$/;

/** The actor whose effect wrote the entry: a call, a turn or an ended child; `undefined` for entries from outside. */
export function sourceOf(event: unknown): string | undefined {
  const { type, turnId, callId, childId } = objectOf(event);
  if (typeof type !== "string" || fromOutside.test(type)) return undefined;
  const source = type === "child.ended" || type === "child.reported" ? childId : (callId ?? turnId);
  return typeof source === "string" ? source : undefined;
}

function picked(fields: Readonly<Record<string, unknown>>, names: readonly string[]): Record<string, unknown> {
  const shown: Record<string, unknown> = {};
  for (const name of names) {
    const value = fields[name];
    if (Array.isArray(value)) shown[name] = value.slice(0, mostItems).filter(isPlain).map(shortened);
    else if (isPlain(value)) shown[name] = shortened(value);
  }
  return shown;
}

type Plain = string | number | boolean | null;

function isPlain(value: unknown): value is Plain {
  return value === null || typeof value === "string" || typeof value === "number" || typeof value === "boolean";
}

function shortened(value: Plain): Plain {
  return typeof value === "string" && value.length > longestText ? `${value.slice(0, longestText)}…` : value;
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

const machines = { agent: agentMachine, turn: turnMachine, toolCall: toolCallMachine };
export type MachineName = keyof typeof machines;

const charts = new Map<MachineName, string>();

/** The chart of a machine as JSON text. */
export function chartOf(name: MachineName): string {
  const chart = charts.get(name) ?? JSON.stringify(machines[name].config, withoutCode);
  charts.set(name, chart);
  return chart;
}

/** Replaces functions by their names and leaves out the initial context. */
function withoutCode(this: unknown, key: string, value: unknown): unknown {
  if (key === "context") return undefined;
  return typeof value === "function" ? { type: value.name === "" ? "inline" : value.name } : value;
}
