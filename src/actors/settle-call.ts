import { createId } from "../base/index.ts";
import {
  type CallEnd,
  type CallOutcome,
  type CallState,
  type Refusal,
  signalOfLimit,
  stepMetadata,
  type StoredError,
} from "../state/index.ts";
import type { NewArtifact } from "../stores/index.ts";
import { excerptOf, LONGEST_ARTIFACT, type RenderedOutput } from "../tools/index.ts";
import type { FactParts, Host } from "./host.ts";
import { requestOfCall } from "./tool-calls.ts";

export interface CallResult {
  readonly outcome: CallOutcome;
  /** For the model. */
  readonly text: string;
  readonly error?: StoredError | undefined;
  readonly artifact?: NewArtifact | undefined;
}

interface SettleParts extends FactParts {
  /** No hook reviews it: the turn is being ended. */
  readonly isUnreviewed?: boolean | undefined;
  /** Of an internal tool, which runs without an entry for its beginning. */
  readonly isInternal?: boolean | undefined;
  /** Messages of reports whose text is in the result. */
  readonly reports?: readonly string[] | undefined;
}

/** Gives a call its one result: the entry, and the message that answers it. */
export function settleCall(host: Host, call: CallState, result: CallResult, parts: SettleParts = {}): void {
  const { callId, turnId, step, name } = call;
  const { outcome, text, error, artifact } = result;
  const now = host.clock.now();
  const isError = outcome !== "success";
  if (artifact) saveArtifacts(host, call, [artifact]);
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
      ...(parts.isInternal ? { internal: true as const } : {}),
      ...(!parts.isUnreviewed && isReviewDue(host, turnId, outcome) ? { reviewDue: true } : {}),
      ...(parts.reports && parts.reports.length > 0 ? { reports: [...parts.reports] } : {}),
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
          content: text,
          origin: "tool",
          callId,
          providerId: requestOfCall(host, callId)?.providerId ?? callId,
          ...(isError ? { isError } : {}),
          ...(artifact ? { artifactId: artifact.artifactId } : {}),
          metadata: stepMetadata(host.identity.agentId, { turnId, step, isTrace: true }),
        },
      ],
    },
  );
}

/** Whether hooks review a call with this outcome. */
function isReviewDue(host: Host, turnId: string, outcome: string): boolean {
  const hooks = host.turn(turnId)?.hooks;
  if (!hooks || outcome === "interrupted") return false;
  return hooks.afterEachTool > 0 || (hooks.onError > 0 && isFailure(outcome));
}

/** Whether `onError` hooks run: refusals by people or policies and interruptions are not failures of the tool. */
export function isFailure(outcome: string): boolean {
  return outcome === "error" || outcome === "invalid" || outcome === "not_found" || outcome === "outcome_unknown";
}

/** Settles a queued call with the result that a worker has posted. */
export function settleEnded(
  host: Host,
  call: CallState,
  { outcome, text, error, artifacts = [], artifactId, stop }: Extract<CallEnd, { type: "settled" }>,
  parts: SettleParts = {},
): void {
  const whole = artifacts.find((artifact) => artifact.artifactId === artifactId);
  saveArtifacts(
    host,
    call,
    artifacts.filter((artifact) => artifact !== whole),
  );
  if (stop) host.append({ type: "stop.signalled", turnId: call.turnId, signal: stop });
  settleCall(host, call, { outcome, text, error: error ?? undefined, artifact: whole }, parts);
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

/** A tool's return value as a result; one that is too large for the conversation becomes an artifact and an excerpt. */
export function resultOfOutput(
  place: Pick<Host, "clock">,
  call: CallState,
  output: RenderedOutput,
  maxCharacters: number,
): CallResult {
  const { text, isError } = output;
  if (isError) return errorResult(text, "output_unreadable");
  if (text.length <= maxCharacters) return { outcome: "success", text };
  if (text.length > LONGEST_ARTIFACT) {
    const why = `it has ${text.length} characters, and ${LONGEST_ARTIFACT} can be kept`;
    return errorResult(`The tool ran, but its result is too large: ${why}.`, "output_too_large");
  }
  const artifact = artifactOf(place, `${call.name} output`, "text/plain", text);
  return { outcome: "success", text: excerptOf(text, maxCharacters, artifact.artifactId), artifact };
}

export function artifactOf(
  { clock }: Pick<Host, "clock">,
  name: string,
  contentType: string,
  content: string,
): NewArtifact {
  const size = Buffer.byteLength(content);
  return { artifactId: createId("artifact"), name, contentType, size, createdAt: clock.now(), content };
}

export function errorResult(message: string, code: string, outcome: CallOutcome = "error"): CallResult {
  return { outcome, text: message, error: { code, message, retryable: false } };
}

/** The result of a call whose intent was refused; `what` did not happen. */
export function refusedResult(what: string, refusal: Refusal): CallResult {
  const { limit, accountId } = refusal;
  const why = limit && accountId ? signalOfLimit(limit, accountId, refusal).message : "the agent was aborted";
  return errorResult(`${what}: ${why}.`, "refused", "interrupted");
}

/** The call may or may not have taken effect. */
export function unknownResult(name: string, why: string): CallResult {
  const message = `The outcome of this call of "${name}" is not known: ${why}. It may or may not have taken effect. It is not repeated. Check before you rely on it.`;
  return errorResult(message, "outcome_unknown", "outcome_unknown");
}
