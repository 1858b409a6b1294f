import type { AgentTool } from "../agents/index.ts";
import { createId, shortHash, stableStringify } from "../base/index.ts";
import {
  type CallEnd,
  type CallOutcome,
  type CallPatch,
  type CallState,
  type Entry,
  type EntryOf,
  type FileArtifact,
  type FilePart,
  foldCall,
  type IntentBody,
  type Json,
  meantCall,
  partsOfCall,
  type Refusal,
  signalOfLimit,
  sizeOfBase64,
  stepMetadata,
  type StoredError,
  textOf,
  type ToolCallRequest,
  type TurnState,
} from "../state/index.ts";
import type { NewArtifact } from "../stores/index.ts";
import {
  clientToolsOf,
  excerptOf,
  LONGEST_ARTIFACT,
  type RenderedOutput,
  type ToolRegistry,
  withTools,
} from "../tools/index.ts";
import { settleAbandonedRun } from "./generate.ts";
import type { FactParts, Host } from "./host.ts";

/** Turn, step and number of the call, parsed from its id. */
type CallPosition = Pick<CallState, "callId" | "turnId" | "step" | "index">;

export function callPosition(callId: string): CallPosition {
  return { callId, ...partsOfCall(callId) };
}

/** The call as the model wrote it. */
function requestOfCall(host: Host, { turnId, step, index }: CallPosition): ToolCallRequest | undefined {
  const message = host.message(`${turnId}:${step}`);
  return message?.role === "assistant" ? message.toolCalls?.[index] : undefined;
}

/** The arguments of a call as text: the model's own, or those set by a hook. */
export function argumentsTextOf(host: Host, call: CallPosition): string {
  const changed = callPatchesOf(host, call).findLast((patch) => patch.arguments !== undefined);
  if (changed?.arguments !== undefined) return changed.arguments;
  const request = requestOfCall(host, call);
  return request ? meantCall(request).arguments : "";
}

/** The changes of a call by `afterLlm` and `beforeTools` hooks, in order. */
export function callPatchesOf(host: Host, { callId, turnId }: CallPosition): readonly CallPatch[] {
  const hooks = host.turn(turnId)?.hooks;
  if (hooks && hooks.afterLlm + hooks.beforeTools === 0) return none;
  return host
    .memory(turnId)
    .entries.flatMap((entry) =>
      entry.type === "hook.applied" ? (entry.patch.calls ?? []).filter((patch) => patch.callId === callId) : [],
    );
}

const none: readonly never[] = [];

/** The tools of turns with client tools, by the first entry of the turn. */
const registries = new WeakMap<Entry, { readonly own: Registry; readonly all: Registry }>();
type Registry = ToolRegistry<AgentTool>;

/** The tools of a turn: those of the definition, followed by those that the turn's caller executes. */
export function toolsOf(host: Host, turnId: string): Registry {
  const { tools: own, clientTools: takesMore } = host.definition;
  const first = takesMore ? host.memory(turnId).entries[0] : undefined;
  if (first?.type !== "turn.started" || first.clientTools === undefined) return own;
  let known = registries.get(first);
  // Runtimes of one process may share the entry and have different definitions.
  if (known?.own !== own) {
    known = { own, all: withTools<AgentTool>(own, clientToolsOf(first.clientTools)) };
    registries.set(first, known);
  }
  return known.all;
}

/** The tool, if the turn has it and it was granted to the agent. A model cannot grant tools. */
export function grantedTool(host: Host, turnId: string, name: string): AgentTool | undefined {
  const tools = toolsOf(host, turnId);
  const { grantedTools, deniedTools = [] } = host.identity;
  const isGranted = tools.isOnDemand(name) ? !deniedTools.includes(name) : (grantedTools?.includes(name) ?? true);
  return isGranted ? tools.get(name) : undefined;
}

export function hashOfArguments(args: Json): string {
  return shortHash(stableStringify(args));
}

export interface CallResult {
  /** The outcome, for instance `success`, `error` or `outcome_unknown`. */
  readonly outcome: CallOutcome;
  /** Text for the model. */
  readonly text: string;
  /** Images sent to the model with the text. */
  readonly images?: RenderedOutput["images"] | undefined;
  /** Files sent to the model with the text, if its provider accepts them. */
  readonly files?: readonly FilePart[] | undefined;
  /** The result as data, for programs. */
  readonly structured?: Json | undefined;
  /** The error; `undefined` if the call ended without one. */
  readonly error?: StoredError | undefined;
  /** The complete text, if `text` is an excerpt. */
  readonly artifact?: NewArtifact | undefined;
  /** The content of its files. */
  readonly fileArtifacts?: readonly NewArtifact[] | undefined;
}

type Begun = Pick<EntryOf<"tool.started">, "effect" | "queue" | "priority" | "stubbed">;

/** The intent to start the next attempt. */
export function startOf(
  { turnId, step, callId, name, gate, attempt }: CallState,
  { accountId }: Pick<TurnState, "accountId">,
  begun: Begun,
): Extract<IntentBody, { type: "tool.started" }> {
  // Arguments that no earlier entry contains (gateCall).
  const told = attempt === 0 && gate?.argumentsHash === "" ? { arguments: gate.arguments } : {};
  const started = { type: "tool.started", turnId, step, callId, name, attempt: attempt + 1 } as const;
  return { ...started, idempotencyKey: callId, accountId, ...told, ...begun };
}

/** Commits the intent to start an attempt. Returns the updated call; `undefined` if the intent was refused. */
export async function startCall(
  host: Host,
  call: CallState,
  begun: Begun,
  signal: AbortSignal,
): Promise<CallState | undefined> {
  const turn = host.turn(call.turnId);
  // An interrupt that arrived while the call waited for a slot or its next attempt has settled it.
  if (!turn || signal.aborted) return undefined;
  const outcome = await host.propose(startOf(call, turn, begun));
  if (outcome.granted) return foldCall(call, outcome.entry);
  const { reason } = outcome.entry;
  // An interrupt that arrived with the refusal has settled the call.
  if (reason === "paused" || signal.aborted) return undefined;
  // External work that the call started earlier is cancelled when the abort ends the turn, which settles the call.
  if (reason === "aborted" && call.note !== null) return undefined;
  settleCall(host, call, refusedResult("The tool was not run", outcome.entry));
  return undefined;
}

interface SettleParts extends FactParts {
  /** Not reviewed by hooks, because the turn is being ended. */
  readonly isUnreviewed?: boolean | undefined;
  /** For an internal tool, which has no entry for its start. */
  readonly isInternal?: boolean | undefined;
  /** In a fork: the recorded call whose result it is. */
  readonly recorded?: string | undefined;
  /** In a stubbed session: the index of the stub that gave the result; `null` if none did. */
  readonly stub?: number | null | undefined;
  /** Messages of reports whose text is already in the result. */
  readonly reports?: readonly string[] | undefined;
}

/** Settles a call with its only result: the entry, and the message that answers it. */
export function settleCall(host: Host, call: CallState, result: CallResult, parts: SettleParts = {}): void {
  const { callId, turnId, step, name } = call;
  const { outcome, text, images = [], files = [], structured, error, artifact, fileArtifacts = [] } = result;
  const now = host.clock.now();
  const isError = outcome !== "success";
  saveArtifacts(host, call, artifact ? [...fileArtifacts, artifact] : fileArtifacts);
  settleAbandonedRun(host, call, (run) => run === callId);
  host.append(
    {
      type: "tool.settled",
      turnId,
      step,
      callId,
      name,
      outcome,
      messageId: callId,
      durationMs: call.startedAt === null ? 0 : Math.max(0, now - call.startedAt),
      error: error ?? null,
      artifactId: artifact?.artifactId ?? null,
      ...(structured === undefined ? {} : { structured }),
      ...(parts.isInternal ? { internal: true as const } : {}),
      ...(!parts.isUnreviewed && isReviewDue(host, turnId, outcome) ? { reviewDue: true } : {}),
      ...(parts.recorded === undefined ? {} : { recorded: parts.recorded }),
      ...(parts.stub === undefined ? {} : { stub: parts.stub }),
      ...(parts.reports && parts.reports.length > 0 ? { reports: [...parts.reports] } : {}),
      ...(!parts.isUnreviewed && endsTurn(host, call, outcome) ? { endsTurn: true as const } : {}),
    },
    {
      ...parts,
      closedRequests: call.openRequest ? [call.openRequest.requestId] : [],
      messages: [
        ...(parts.messages ?? []),
        {
          id: callId,
          role: "tool",
          createdAt: now,
          content: images.length + files.length === 0 ? text : [{ type: "text", text }, ...images, ...files],
          origin: "tool",
          callId,
          providerId: requestOfCall(host, call)?.providerId ?? callId,
          ...(isError ? { isError } : {}),
          ...(artifact ? { artifactId: artifact.artifactId } : {}),
          metadata: stepMetadata(host.identity.agentId, { turnId, step, isTrace: true }),
        },
      ],
    },
  );
}

/** Whether a result with this outcome may end the turn. What a stopped subagent has is not its answer. */
export function endsTurn(host: Host, { turnId, name, childResult }: CallState, outcome: CallOutcome): boolean {
  const tool = grantedTool(host, turnId, name);
  if (tool === undefined || (tool.kind !== "function" && tool.kind !== "subagent") || !tool.endsTurn) return false;
  return outcome === "success" && (childResult === null || childResult.outcome === "completed");
}

/** One call with its result, as exposed to hooks. */
interface RoundResult {
  readonly call: { readonly callId: string; readonly name: string; readonly arguments: string };
  readonly outcome: EntryOf<"tool.settled">["outcome"];
  /** Text for the model. */
  readonly text: string;
  /** Milliseconds since the start of the call. */
  readonly durationMs: number;
  readonly error: StoredError | null;
}

/** The results of the round that has just ended, in the order of its calls. */
export function resultsOfRound(host: Host, turnId: string): RoundResult[] {
  const calls = host.turn(turnId)?.execution.currentStep?.toolExecutions ?? [];
  return calls.flatMap(({ callId }) => resultOfCall(host, turnId, callId) ?? []);
}

export function resultOfCall(host: Host, turnId: string, callId: string): RoundResult | undefined {
  const settled = host
    .memory(turnId)
    .entries.findLast(
      (entry): entry is EntryOf<"tool.settled"> => entry.type === "tool.settled" && entry.callId === callId,
    );
  if (!settled) return undefined;
  const { name, outcome, messageId, durationMs, error } = settled;
  const text = textOf(host.message(messageId)?.content ?? "");
  return {
    call: { callId, name, arguments: argumentsTextOf(host, callPosition(callId)) },
    outcome,
    text,
    durationMs,
    error,
  };
}

/** Whether hooks review a call with this outcome. */
function isReviewDue(host: Host, turnId: string, outcome: string): boolean {
  const hooks = host.turn(turnId)?.hooks;
  if (!hooks || outcome === "interrupted") return false;
  return hooks.afterEachTool > 0 || (hooks.onError > 0 && isFailure(outcome));
}

/** Whether `onError` hooks run: refusals by people or policies, and interruptions, are not failures of the tool. */
export function isFailure(outcome: string): boolean {
  return outcome === "error" || outcome === "invalid" || outcome === "not_found" || outcome === "outcome_unknown";
}

/** Settles a queued call with the result that a worker has posted. */
export function settleEnded(
  host: Host,
  call: CallState,
  {
    outcome,
    text,
    images,
    files,
    structured,
    error,
    artifacts = [],
    artifactId,
    stop,
  }: Extract<CallEnd, { type: "settled" }>,
  parts: SettleParts = {},
): void {
  const whole = artifacts.find((artifact) => artifact.artifactId === artifactId);
  saveArtifacts(
    host,
    call,
    artifacts.filter((artifact) => artifact !== whole),
  );
  if (stop) host.append({ type: "stop.signalled", turnId: call.turnId, signal: stop });
  const result = { outcome, text, images, files, structured, error: error ?? undefined, artifact: whole };
  settleCall(host, call, result, parts);
}

export function saveArtifacts(
  host: Host,
  { turnId, step, callId }: CallState,
  artifacts: readonly NewArtifact[],
): void {
  for (const artifact of artifacts) {
    const { artifactId, name, contentType, size } = artifact;
    host.append(
      { type: "artifact.saved", turnId, step, callId, artifactId, name, contentType, size },
      { artifacts: [artifact] },
    );
  }
}

/** A tool's return value as a result; one too large for the conversation becomes an artifact and an excerpt. */
export function resultOfOutput(
  place: Pick<Host, "clock">,
  call: CallState,
  output: RenderedOutput,
  maxCharacters: number,
): CallResult {
  const { text, images, files = [], structured, error } = output;
  if (error === "unreadable") return errorResult(text, "output_unreadable");
  const parts =
    files.length === 0
      ? {}
      : {
          files: files.map(({ part }) => part),
          fileArtifacts: files.flatMap(({ artifact }) => (artifact ? [artifactOf(place, call, artifact)] : [])),
        };
  const settled = (shown: string): CallResult => ({
    ...(error === undefined ? { outcome: "success", text: shown } : errorResult(shown, "tool_error")),
    images,
    structured,
    ...parts,
  });
  if (text.length <= maxCharacters) return settled(text);
  if (text.length > LONGEST_ARTIFACT) {
    const why = `it has ${text.length} characters, and ${LONGEST_ARTIFACT} can be kept`;
    return errorResult(`The tool ran, but its result is too large: ${why}.`, "output_too_large");
  }
  const artifact = artifactOf(place, call, { name: `${call.name} output`, contentType: "text/plain", content: text });
  return { ...settled(excerptOf(text, maxCharacters, artifact.artifactId)), artifact };
}

/** The content of a new artifact, with its id if it has one. */
type ArtifactContent = Omit<FileArtifact, "artifactId"> & Partial<Pick<FileArtifact, "artifactId">>;

export function artifactOf(
  { clock }: Pick<Host, "clock">,
  { turnId, callId }: Pick<CallState, "turnId" | "callId">,
  { name, contentType, content, encoding, artifactId = createId("artifact") }: ArtifactContent,
): NewArtifact {
  const size = encoding === "base64" ? sizeOfBase64(content) : Buffer.byteLength(content);
  const stored = { artifactId, name, contentType, size, createdAt: clock.now(), turnId, callId, content };
  return encoding === undefined ? stored : { ...stored, encoding };
}

export function errorResult(message: string, code: string, outcome: CallOutcome = "error"): CallResult {
  return { outcome, text: message, error: { code, message, retryable: false } };
}

/** The result of a call whose intent was refused; `what` describes the action that did not happen. */
export function refusedResult(what: string, refusal: Refusal): CallResult {
  const { limit, accountId } = refusal;
  const why = limit && accountId ? signalOfLimit(limit, accountId, refusal).message : "the agent was aborted";
  return errorResult(`${what}: ${why}.`, "refused", "interrupted");
}

/** The result of a call that may or may not have taken effect. */
export function unknownResult(name: string, why: string): CallResult {
  const message = `The outcome of this call of "${name}" is not known: ${why}. It may or may not have taken effect. It is not repeated. Check before you rely on it.`;
  return errorResult(message, "outcome_unknown", "outcome_unknown");
}
