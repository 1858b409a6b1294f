import { createRedactor, flagRule, optionsOf, reading, type Redactor, textRule } from "../base/index.ts";
import { NotFoundError } from "../errors/index.ts";
import {
  meantCall,
  fileMark,
  type Json,
  type Message,
  partsOfCall,
  rootOf,
  textOf,
  type TroupeEvent,
  type TroupeEventOf,
} from "../state/index.ts";
import { redactorRule, eventsInJournal, type JournalSource } from "./listen.ts";

/** One turn in the record of a session; field names are those of the file. */
export interface SessionTurn {
  /** Name of the agent's definition; only for subagents. */
  readonly agent?: string;
  /** The turn. */
  readonly turn_id: string;
  /** Its input, as text. */
  readonly input: string;
  /** The first model that was called; null if none was. */
  readonly model: string | null;
  /** Milliseconds from its start to its end. */
  readonly duration_ms: number;
  /** Input and output tokens of the turn's own model calls; subagents list their own. */
  readonly tokens: number;
  /** Dollars of the turn's own model calls; null for an unknown price. */
  readonly cost: number | null;
  /** Names in the order of the model's calls, including failed and refused ones. */
  readonly tools_called: readonly string[];
  /** Its text. */
  readonly result: string;
  /** Outcome of the turn. */
  readonly status: "completed" | "stopped" | "failed";
  /** Reason of its end. */
  readonly stop_reason: string;
  /** Code and message of its error; absent without one. */
  readonly error?: string;
  /** Ended turns of its subagents. */
  readonly subagents?: readonly SessionTurn[];
  /** The messages that it added, if requested. */
  readonly messages?: readonly SessionMessage[];
}

/** All turns of one agent. */
export interface SessionRecord {
  /** Name of the agent's definition. */
  readonly agent: string;
  /** Id of the agent. */
  readonly agent_id: string;
  /** Its session; absent without one. */
  readonly session_id?: string;
  /** The first model that was called; null if none was. */
  readonly model: string | null;
  /** Time of its first turn's start, in ISO 8601. */
  readonly started: string;
  /** Its ended turns, in order. */
  readonly turns: readonly SessionTurn[];
}

interface OpenTurn {
  readonly turnId: string;
  readonly agentName: string;
  readonly input: string;
  readonly startedAt: number;
  model: string | null;
  readonly calls: { readonly callId: string; readonly name: string }[];
}

type EndEvent = TroupeEventOf<"turn.completed" | "turn.stopped" | "turn.failed">;

/** Builds the record of one agent from the events of its tree. A turn counts only its own model calls. */
export class SessionFold {
  readonly #agentId: string;
  readonly #open = new Map<string, OpenTurn>();
  /** The turns that spawned each subagent. */
  readonly #spawnedBy = new Map<string, string>();
  /** Ended turns of the subagents, by the turn that spawned them: subagents may continue after it has ended. */
  readonly #subagents = new Map<string, SessionTurn[]>();
  readonly #turns: SessionTurn[] = [];
  #head: Omit<SessionRecord, "turns" | "model"> | undefined;

  constructor(agentId: string) {
    this.#agentId = agentId;
  }

  /** Returns the turn id if this event ended a turn of the agent itself. */
  note(event: TroupeEvent): string | undefined {
    if (event.turnId === null) return undefined;
    if (event.type === "turn.started") {
      this.#start(event, event.turnId);
      return undefined;
    }
    const open = this.#open.get(event.turnId);
    if (!open) return undefined;
    switch (event.type) {
      case "step.started":
        open.model ??= event.model;
        return undefined;
      case "tool.completed":
      case "tool.failed":
        open.calls.push({ callId: event.callId, name: event.name });
        return undefined;
      case "subagent.spawned":
        this.#spawnedBy.set(event.childId, event.turnId);
        return undefined;
      case "turn.completed":
      case "turn.stopped":
      case "turn.failed":
        return this.#end(event, open) ? event.turnId : undefined;
      default:
        return undefined;
    }
  }

  /** `undefined` until the agent's first turn has started. */
  get record(): SessionRecord | undefined {
    if (!this.#head) return undefined;
    const turns = this.#turns.map((turn) => this.#withSubagents(turn));
    const model = turns.find((turn) => turn.model !== null)?.model ?? null;
    const { started, ...who } = this.#head;
    return { ...who, model, started, turns };
  }

  #start(event: TroupeEventOf<"turn.started">, turnId: string): void {
    const { agentId, agentName, sessionId, at, prompt } = event;
    if (agentId === this.#agentId) {
      const session = sessionId === null ? {} : { session_id: sessionId };
      this.#head ??= { agent: agentName, agent_id: agentId, ...session, started: new Date(at).toISOString() };
    } else if (!this.#spawnedBy.has(agentId)) return;
    this.#open.set(turnId, { turnId, agentName, input: prompt, startedAt: at, model: null, calls: [] });
  }

  #end(event: EndEvent, open: OpenTurn): boolean {
    this.#open.delete(open.turnId);
    const turn = endedTurn(event, open);
    if (event.agentId === this.#agentId) {
      this.#turns.push(turn);
      return true;
    }
    const spawnedBy = this.#spawnedBy.get(event.agentId) ?? "";
    this.#subagents.set(spawnedBy, [...(this.#subagents.get(spawnedBy) ?? []), { agent: open.agentName, ...turn }]);
    return false;
  }

  #withSubagents(turn: SessionTurn): SessionTurn {
    const subagents = this.#subagents.get(turn.turn_id)?.map((below) => this.#withSubagents(below));
    return subagents ? { ...turn, subagents } : turn;
  }
}

function endedTurn(event: EndEvent, open: OpenTurn): SessionTurn {
  const { usage, costMicros, text, stopReason } = event;
  const error = event.type === "turn.failed" ? event.error : null;
  return {
    turn_id: open.turnId,
    input: open.input,
    model: open.model,
    duration_ms: event.at - open.startedAt,
    tokens: usage.inputTokens + usage.outputTokens,
    cost: costMicros === null ? null : costMicros / 1_000_000,
    tools_called: open.calls.toSorted(byPosition).map(({ name }) => name),
    result: text,
    status: statuses[event.type],
    stop_reason: stopReason,
    ...(error ? { error: `${error.code}: ${error.message}` } : {}),
  };
}

const statuses = { "turn.completed": "completed", "turn.stopped": "stopped", "turn.failed": "failed" } as const;

/** Calls of one round may end in any order. */
function byPosition(one: { readonly callId: string }, other: { readonly callId: string }): number {
  const [a, b] = [partsOfCall(one.callId), partsOfCall(other.callId)];
  return a.step - b.step || a.index - b.index;
}

/** One message in the record of a session; field names are those of the file. */
export interface SessionMessage {
  /** The author of the message. */
  readonly role: Message["role"];
  /** Its text. */
  readonly content: string;
  /** URLs of images; data URLs are cut. */
  readonly images?: readonly string[];
  /** Names, types and sizes of files. */
  readonly files?: readonly string[];
  /** Tool calls of the model; absent without any. */
  readonly tool_calls?: readonly { readonly id: string; readonly name: string; readonly arguments: Json }[];
  /** The call whose result the message contains; absent for other messages. */
  readonly tool_call_id?: string;
  /** `true` if the call failed, else absent. */
  readonly is_error?: true;
}

/** The messages that a turn added to the conversation, in order. */
export function messagesOfTurn(messages: readonly Message[], turnId: string): SessionMessage[] {
  return messages
    .filter(({ id, metadata }) => metadata?.execution_id === turnId || id.startsWith(`${turnId}:`))
    .map(sessionMessage);
}

function sessionMessage(message: Message): SessionMessage {
  const { role, content } = message;
  const images =
    typeof content === "string"
      ? []
      : content.flatMap((part) => (part.type === "image" ? [shortAddress(part.url)] : []));
  const files =
    typeof content === "string" ? [] : content.flatMap((part) => (part.type === "file" ? [fileMark(part)] : []));
  const calls = message.role === "assistant" ? (message.toolCalls ?? []).map(meantCall) : [];
  return {
    role,
    content: textOf(content),
    ...(images.length > 0 ? { images } : {}),
    ...(files.length > 0 ? { files } : {}),
    ...(calls.length > 0
      ? {
          tool_calls: calls.map(({ callId, name, arguments: text }) => ({ id: callId, name, arguments: parsed(text) })),
        }
      : {}),
    ...(message.role === "tool" ? { tool_call_id: message.callId } : {}),
    ...(message.role === "tool" && message.isError === true ? { is_error: true } : {}),
  };
}

function shortAddress(url: string): string {
  return url.startsWith("data:") && url.length > 60 ? `${url.slice(0, 40)}… (${url.length} characters)` : url;
}

/** Parses JSON, so that the redactor sees the names of secret fields. */
function parsed(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}

/** Options of `sessionRecord()`. */
export interface SessionRecordOptions {
  /** Includes the messages that each turn added. Default false. */
  readonly messages?: boolean | undefined;
  /** Removes secrets. Default: `createRedactor()`, which removes the environment's secrets. */
  readonly redactor?: Redactor | undefined;
}

/**
 * The record of an agent from its journal, equal to the one that `yamlSession` writes. Also works for agents that ended
 * long ago, and for subagents. Throws `NotFoundError` for an agent without turns.
 */
export async function sessionRecord(
  source: JournalSource,
  agentId: string,
  given?: SessionRecordOptions,
): Promise<SessionRecord> {
  reading("sessionRecord()", () => textRule(agentId, "sessionRecord(): the agent's id"));
  const options = optionsOf<SessionRecordOptions>(given, "sessionRecord()", {
    rules: { messages: flagRule, redactor: redactorRule },
    instead: { content: "messages" },
  });
  const fold = new SessionFold(agentId);
  for await (const event of eventsInJournal(source, rootOf(agentId))) fold.note(event);
  const { record } = fold;
  if (!record) throw new NotFoundError(`agent "${agentId}" has no turns`);
  const turns = options.messages === true ? await withMessages(source, agentId, record.turns) : record.turns;
  const { redactor = createRedactor() } = options;
  return redactor.value({ ...record, turns }) as SessionRecord;
}

/** Adds the messages of each turn. */
async function withMessages(
  { stores, tenant }: JournalSource,
  agentId: string,
  turns: readonly SessionTurn[],
): Promise<SessionTurn[]> {
  const messages = await stores.messages({ tenant, agentId });
  return turns.map((turn) => ({ ...turn, messages: messagesOfTurn(messages, turn.turn_id) }));
}
