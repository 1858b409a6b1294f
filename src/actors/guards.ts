import {
  blockedText,
  type CheckedVerdict,
  type GuardContext,
  type RegisteredGuards,
  verdictOf,
} from "../hooks/index.ts";
import type { ModelAnswer } from "../model/index.ts";
import type { CallState, EntryOf, Json, StopSignal } from "../state/index.ts";
import { excerptOf, LONGEST_ARTIFACT } from "../tools/index.ts";
import type { NewArtifact } from "../stores/index.ts";
import { settleAbandonedRun } from "./generate.ts";
import { guardContextOf } from "./hook-context.ts";
import { appendWarnings, type Host, type Warning } from "./host.ts";
import { artifactOf, type CallResult, errorResult } from "./tool-calls.ts";

/*
 * Guards check values where hooks cannot change them (docs/kit.md). Invariants:
 * 1. A value reaches neither the journal nor a model, a tool or a follower before all guards have let it pass.
 * 2. A guard that throws, or returns anything but a verdict, blocks.
 * 3. The outcome is part of the entry that stores the value: no guard runs again for a value that was stored.
 */

/** Guards of one kind, with the context in which each is called. */
interface GuardRun {
  readonly guards: readonly RegisteredGuards[];
  readonly contextOf: (index: number) => GuardContext;
}

/** A value after all guards. */
type Guarded<Value> =
  | { readonly kind: "pass" | "rewrite"; readonly value: Value; readonly plugins: readonly string[] }
  | { readonly kind: "block"; readonly plugin: string; readonly reason: string };

const isText = (value: unknown): value is string => typeof value === "string" && value.isWellFormed();
const isObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Whether arguments of calls are guarded. */
export function guardsCalls({ definition }: Pick<Host, "definition">): boolean {
  return definition.guards.some(({ guards }) => guards.toolCall !== undefined);
}

/** Whether results are guarded. */
export function guardsResults({ definition }: { readonly definition: Pick<Host["definition"], "guards"> }): boolean {
  return definition.guards.some(({ guards }) => guards.toolResult !== undefined);
}

/** Passes a text through all guards of a kind; each sees what those before it have made of it. */
async function guardedText(
  { guards, contextOf }: GuardRun,
  text: string,
  ask: (
    guards: RegisteredGuards["guards"],
    text: string,
    run: GuardContext,
  ) => ReturnType<NonNullable<RegisteredGuards["guards"]["output"]>>,
): Promise<Guarded<string>> {
  let value = text;
  const plugins: string[] = [];
  for (const [index, { plugin, guards: own }] of guards.entries()) {
    const verdict = await verdictOf(() => ask(own, value, contextOf(index)), isText);
    if (verdict.kind === "block") return { kind: "block", plugin, reason: verdict.reason };
    if (verdict.kind !== "rewrite" || verdict.value === value) continue;
    value = verdict.value;
    plugins.push(plugin);
  }
  return { kind: plugins.length > 0 ? "rewrite" : "pass", value, plugins };
}

/** The guards' decision on the arguments of a call. */
export async function guardedCall(
  host: Host,
  call: CallState,
  args: Json,
  signal: AbortSignal,
): Promise<Guarded<Json>> {
  const { turnId, step, callId, name } = call;
  let value = args;
  const plugins: string[] = [];
  for (const [index, { plugin, guards }] of host.definition.guards.entries()) {
    if (!guards.toolCall) continue;
    const run = guardContextOf(host, { turnId, step, run: `guardCall:${index}:${callId}` }, signal);
    const verdict: CheckedVerdict<object> = await verdictOf<object>(
      () => guards.toolCall?.({ callId, name, arguments: structuredClone(value) as Json }, run),
      isObject,
    );
    signal.throwIfAborted();
    if (verdict.kind === "block") return { kind: "block", plugin, reason: verdict.reason };
    if (verdict.kind !== "rewrite") continue;
    value = verdict.value as Json;
    plugins.push(plugin);
  }
  return { kind: plugins.length > 0 ? "rewrite" : "pass", value, plugins };
}

/** The limit of characters that a result without a tool of its own has. */
const RESULT_CHARACTERS = 32_000;

interface ResultRun {
  /** Runs in the process of the agent; absent in a worker, where nothing can be journalled. */
  readonly host?: Host;
  readonly definition: Pick<Host["definition"], "guards">;
  readonly clock: Host["clock"];
  readonly contextOf: (index: number) => GuardContext;
  readonly signal: AbortSignal;
  /** Characters that the model sees of a result. */
  readonly maxCharacters?: number | undefined;
}

/** How a result is guarded in the process that owns its agent. */
export function ownResultRun(host: Host, call: CallState, signal: AbortSignal, maxCharacters?: number): ResultRun {
  const { turnId, step, callId } = call;
  const contextOf = (index: number): GuardContext =>
    guardContextOf(host, { turnId, step, run: `guardResult:${index}:${callId}` }, signal);
  return { host, definition: host.definition, clock: host.clock, contextOf, signal, maxCharacters };
}

/** Results of the runtime's own, such as refusals and interruptions, contain nothing that comes from outside. */
const guardedOutcomes: ReadonlySet<string> = new Set(["success", "error", "outcome_unknown"]);

/** The result of a call after the guards of results. */
export async function guardedResult(run: ResultRun, call: CallState, result: CallResult): Promise<CallResult> {
  if (!guardsResults(run) || !guardedOutcomes.has(result.outcome)) return result;
  const guards = run.definition.guards.map((one) => (one.guards.toolResult ? one : undefined));
  const about = {
    call: { callId: call.callId, name: call.name, arguments: call.gate?.arguments ?? null },
    isError: result.outcome !== "success",
  };
  const changed: string[] = [];
  const checked = async (part: "text" | "structured" | "file", text: string): Promise<string> => {
    if (text === "") return text;
    let value = text;
    for (const [index, one] of guards.entries()) {
      if (!one) continue;
      const guarded = await guardedText(
        { guards: [one], contextOf: () => run.contextOf(index) },
        value,
        (own, now, context) => own.toolResult?.({ ...about, part, text: now }, context),
      );
      if (guarded.kind === "block") throw new BlockedResult(one.plugin, guarded.reason);
      if (guarded.kind === "rewrite") changed.push(one.plugin);
      value = guarded.value;
    }
    return value;
  };
  const { name } = call;
  try {
    const guarded = await resultOf(run, call, result, checked);
    noteResult(run, call, { what: "tool_result", name, changed });
    return guarded;
  } catch (error) {
    if (!(error instanceof BlockedResult)) throw error;
    const { plugin, reason } = error;
    noteResult(run, call, { what: "tool_result", name, changed: [plugin], reason });
    const text = blockedText(`The result of ${name}`, plugin, reason);
    if (result.outcome === "success") return errorResult(`${text} The tool has run.`, "guard_blocked");
    return errorResult(text, "guard_blocked", result.outcome);
  }
}

/** Journals what the guards did, unless the turn has ended meanwhile. */
function noteResult({ host, signal }: ResultRun, call: CallState, noted: NotedGuard): void {
  if (!host || signal.aborted) return;
  appendWarnings(host, call.turnId, guardWarnings(noted));
  settleAbandonedRun(host, call, (run) => run.startsWith("guardResult:") && run.includes(`:${call.callId}@`));
}

class BlockedResult extends Error {
  readonly plugin: string;
  readonly reason: string;

  constructor(plugin: string, reason: string) {
    super(reason);
    this.plugin = plugin;
    this.reason = reason;
  }
}

type Check = (part: "text" | "structured" | "file", text: string) => Promise<string>;

async function resultOf(run: ResultRun, call: CallState, result: CallResult, check: Check): Promise<CallResult> {
  const { artifact, fileArtifacts, structured, error } = result;
  const whole = artifact?.content ?? result.text;
  const text = await check("text", whole);
  const json = structured === undefined ? undefined : JSON.stringify(structured);
  const checkedJson = json === undefined ? undefined : await check("structured", json);
  const files: NewArtifact[] = [];
  for (const file of fileArtifacts ?? []) {
    if (file.encoding !== undefined) files.push(file);
    else {
      const content = await check("file", file.content);
      files.push(content === file.content ? file : { ...file, content, size: Buffer.byteLength(content) });
    }
  }
  const { structured: _data, artifact: _whole, ...rest } = result;
  return {
    ...rest,
    ...(text === whole ? { text: result.text, artifact } : shownText(run, call, text, artifact)),
    ...(error && text !== whole ? { error: { ...error, message: text } } : {}),
    ...(json === undefined ? {} : { structured: json === checkedJson ? structured : parsedOr(checkedJson) }),
    ...(fileArtifacts === undefined ? {} : { fileArtifacts: files }),
  };
}

/** Rewritten JSON that cannot be parsed is left out. */
function parsedOr(text: string | undefined): Json | undefined {
  try {
    return text === undefined ? undefined : (JSON.parse(text) as Json);
  } catch {
    return undefined;
  }
}

/** A rewritten text, cut as the tool's own would have been. */
function shownText(
  { clock, maxCharacters = RESULT_CHARACTERS }: ResultRun,
  call: CallState,
  text: string,
  before: NewArtifact | undefined,
): Pick<CallResult, "text" | "artifact"> {
  if (text.length <= maxCharacters) return { text };
  const content = text.slice(0, LONGEST_ARTIFACT);
  const made =
    before ?? artifactOf({ clock }, call, { name: `${call.name} output`, contentType: "text/plain", content });
  const artifact = { ...made, content, size: Buffer.byteLength(content) };
  return { text: excerptOf(content, maxCharacters, artifact.artifactId), artifact };
}

/** An answer after the guards of outputs, and why the turn must stop if they have blocked it. */
interface GuardedAnswer {
  readonly answer: ModelAnswer;
  readonly blocked?: StopSignal;
  /** What the guards did; absent if they let the answer pass as it was. */
  readonly noted?: NotedGuard;
}

/** Whether answers may be shown only when they are complete and checked. */
export function holdsAnswers({ definition }: Pick<Host, "definition">): boolean {
  return definition.guards.some(({ guards }) => guards.output !== undefined);
}

/** The answer after the guards of outputs. Thoughts of a changed answer are dropped, because they belong to the original. */
export async function guardedAnswer(
  host: Host,
  granted: EntryOf<"model.requested">,
  answer: ModelAnswer,
  signal: AbortSignal,
): Promise<GuardedAnswer> {
  const { response } = answer;
  if (!holdsAnswers(host) || response.content === "") return { answer };
  const { turnId, step, attempt } = granted;
  const guards = host.definition.guards.filter(({ guards: own }) => own.output !== undefined);
  const contextOf = (index: number): GuardContext =>
    guardContextOf(host, { turnId, step, run: `guardOutput:${index}:${attempt}` }, signal);
  const guarded = await guardedText({ guards, contextOf }, response.content, (own, text, run) =>
    own.output?.(text, run),
  );
  if (guarded.kind === "pass") return { answer };
  const { reasoning: _thoughts, prefixHash: _prefix, ...rest } = response;
  const noted = { what: "output", name: null } as const;
  if (guarded.kind !== "block") {
    return {
      answer: { ...answer, response: { ...rest, content: guarded.value } },
      noted: { ...noted, changed: guarded.plugins },
    };
  }
  const { plugin, reason } = guarded;
  const content = blockedText("The answer", plugin, reason);
  return {
    answer: { ...answer, response: { ...rest, content, toolCalls: [], finishReason: "stop" } },
    blocked: { reason: "stop_requested", message: content, source: `hook:${plugin}` },
    noted: { ...noted, changed: [plugin], reason },
  };
}

/** A result of a tool that is to be the answer, after the guards of outputs. */
export async function guardedToolAnswer(
  host: Host,
  { turnId, step, callId }: Pick<CallState, "turnId" | "step" | "callId">,
  text: string,
  signal: AbortSignal,
): Promise<{ readonly text: string; readonly blocked?: StopSignal }> {
  if (!holdsAnswers(host) || text === "") return { text };
  const guards = host.definition.guards.filter(({ guards: own }) => own.output !== undefined);
  const contextOf = (index: number): GuardContext =>
    guardContextOf(host, { turnId, step, run: `guardOutput:${index}:${callId}` }, signal);
  await host.committed();
  signal.throwIfAborted();
  const guarded = await guardedText({ guards, contextOf }, text, (own, value, run) => own.output?.(value, run));
  signal.throwIfAborted();
  settleAbandonedRun(host, { turnId, step }, (run) => run.startsWith("guardOutput:"));
  const noted = { what: "output", name: null } as const;
  if (guarded.kind !== "block") {
    appendWarnings(host, turnId, guardWarnings({ ...noted, changed: guarded.plugins }));
    return { text: guarded.value };
  }
  const { plugin, reason } = guarded;
  appendWarnings(host, turnId, guardWarnings({ ...noted, changed: [plugin], reason }));
  const content = blockedText("The answer", plugin, reason);
  return { text: content, blocked: { reason: "stop_requested", message: content, source: `hook:${plugin}` } };
}

interface NotedGuard {
  readonly what: "tool_call" | "tool_result" | "output";
  /** Name of the tool. */
  readonly name: string | null;
  /** The plugins whose guards have changed or blocked the value. */
  readonly changed: readonly string[];
  /** Why it was blocked; absent if it was rewritten. */
  readonly reason?: string;
}

/** A warning without the value: a follower must not see what the guard has removed. */
export function guardWarnings({ what, name, changed, reason }: NotedGuard): readonly Warning[] {
  if (changed.length === 0) return [];
  const plugins = [...new Set(changed)].map((plugin) => `"${plugin}"`).join(", ");
  const value = what === "output" ? "an answer" : `${what === "tool_call" ? "a call" : "a result"} of ${name}`;
  const why = reason === undefined ? "" : `: ${reason}`;
  const done = reason === undefined ? "rewritten" : "blocked";
  return [{ code: `guard_${what}`, message: `${value} was ${done} by the guard ${plugins}${why}` }];
}
