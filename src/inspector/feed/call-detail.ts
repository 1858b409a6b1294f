import { shortHash, stableStringify } from "../../base/index.ts";
import { NotFoundError } from "../../errors/index.ts";
import { agentOfTurn, gateToldBy, meantCall, partsOfCall, queuedCallKey, textOf } from "../../state/index.ts";
import { definitionIn } from "../../context/index.ts";
import type { CallDetail } from "./answers.ts";
import { type AgentJournal, journalOf } from "./agent-journal.ts";
import type { PlacedEntry } from "./journals.ts";
import { agentKeyIn, type RunSource } from "./source.ts";
import { type Visibility, shownMessage, shownRequest } from "./visible-values.ts";

type Draft = { -readonly [Name in keyof CallDetail]: CallDetail[Name] };
type Attempt = CallDetail["attempts"][number];

/** Everything that is stored about one tool call. Throws `NotFoundError` if the run has no such call. */
export async function callDetail(source: RunSource, callId: string, sight: Visibility): Promise<CallDetail> {
  const of = await journalOf(source, agentOfTurn(partsOfCall(callId).turnId));
  return await callIn({ source, sight, of }, callId);
}

export interface CallContext {
  readonly source: RunSource;
  readonly sight: Visibility;
  /** The agent that made the call. */
  readonly of: AgentJournal;
}

/** For callers that read many calls and have already loaded the journal. */
export async function callIn({ source, sight, of }: CallContext, callId: string): Promise<CallDetail> {
  const { turnId, step } = partsOfCall(callId);
  const { record, journal } = of;
  const { agentId } = record;
  const detail: Draft = {
    callId,
    agentId,
    turnId,
    step,
    name: "",
    kind: null,
    effect: null,
    asked: null,
    said: null,
    parameters: null,
    gate: null,
    attempts: [],
    worker: null,
    end: null,
    requests: [],
    childIds: [],
  };
  const { definition, ...messageIds } = foldCall(detail, journal.entries, sight);
  if (detail.name === "") throw new NotFoundError(`run "${source.runId}" has no call "${callId}"`);
  const key = agentKeyIn(source, agentId);
  const wanted = [messageIds.asking, messageIds.result].filter((id) => id !== null);
  const messages = new Map((await source.stores.messagesById(key, wanted)).map((message) => [message.id, message]));
  const asking = messages.get(messageIds.asking ?? "");
  const asked = asking?.role === "assistant" ? asking.toolCalls?.find((call) => call.callId === callId) : undefined;
  if (asked) detail.asked = sight.namesOnly ? "" : sight.redactor.text(meantCall(asked).arguments);
  const result = messages.get(messageIds.result ?? "");
  if (detail.end && result) detail.end = { ...detail.end, message: shownMessage(result, sight) };
  const attempt = detail.attempts.at(-1)?.attempt ?? 1;
  detail.worker = record.queued?.[queuedCallKey({ callId, attempt })]?.claimedBy ?? null;
  const requests = await source.stores.requests({ tenant: source.tenant, agentId, turnId, limit: 1_000 });
  detail.requests = requests.filter((one) => one.callId === callId).map((one) => shownRequest(one, sight));
  if (asking && detail.requests.length > 0) detail.said = textOf(shownMessage(asking, sight).content);
  const isOpen = detail.requests.some(({ status }) => status === "open");
  if (isOpen && definition !== null && !sight.namesOnly) {
    const { tools = [] } = (await source.stores.definition(source.tenant, source.runId, definition)) ?? {};
    detail.parameters = tools.find(({ name }) => name === detail.name)?.jsonSchema ?? null;
  }
  return detail;
}

/**
 * Folds the entries of the call. Returns the messages with the request for it and its result, and its definition's hash.
 */
function foldCall(detail: Draft, entries: readonly PlacedEntry[], sight: Visibility) {
  const { callId } = detail;
  const { namesOnly, redactor } = sight;
  const remark = <Text extends string | null>(text: Text) => (text === null || !namesOnly ? redacted(text, sight) : "");
  const errorOf = <Failure extends { readonly message: string } | null>(error: Failure): Failure =>
    error === null ? error : { ...error, message: remark(error.message) };
  const messageIds: { asking: string | null; result: string | null } = { asking: null, result: null };
  let definition: string | null = null;
  for (const { entry } of entries) {
    if (messageIds.asking === null) definition = definitionIn(entry)?.hash ?? definition;
    if (entry.type === "model.responded") {
      const call = entry.calls.find((one) => one.callId === callId);
      if (!call) continue;
      detail.name = call.name;
      messageIds.asking = entry.messageId;
    }
    if (!("callId" in entry) || entry.callId !== callId) continue;
    const gate = gateToldBy(entry);
    if (gate) {
      const { verdict, kind, effect, arguments: args, needsApproval, message } = gate;
      const checked = namesOnly ? null : (redactor.value(args) as typeof args);
      const isHashed = gate.argumentsHash !== "" || verdict !== "allowed";
      const argumentsHash = isHashed ? gate.argumentsHash : shortHash(stableStringify(args));
      Object.assign(detail, { kind, effect });
      detail.gate = {
        at: entry.at,
        verdict,
        arguments: checked,
        argumentsHash,
        needsApproval,
        message: remark(message),
      };
    }
    switch (entry.type) {
      case "tool.started": {
        const { attempt, at, idempotencyKey, queue = null, name, effect } = entry;
        Object.assign(detail, { name, effect });
        const started = { attempt, startedAt: at, idempotencyKey, queue, error: null, retryAt: null };
        detail.attempts = [...detail.attempts, started];
        break;
      }
      case "tool.retrying":
        detail.attempts = detail.attempts.map(
          (one): Attempt =>
            one.attempt === entry.attempt ? { ...one, error: errorOf(entry.error), retryAt: entry.retryAt } : one,
        );
        break;
      case "tool.settled": {
        const { at, name, outcome, durationMs, error, artifactId, messageId, structured } = entry;
        detail.name = name;
        messageIds.result = messageId;
        const end = { at, outcome, durationMs, error: errorOf(error), message: null, artifactId };
        const isShown = structured !== undefined && !namesOnly;
        detail.end = isShown ? { ...end, structured: redactor.value(structured) as typeof structured } : end;
        break;
      }
      case "child.spawned":
        detail.childIds = [...detail.childIds, entry.childId];
        break;
      default:
    }
  }
  return { ...messageIds, definition };
}

function redacted<Text extends string | null>(text: Text, { redactor }: Visibility): Text {
  return (text === null ? text : redactor.text(text)) as Text;
}
