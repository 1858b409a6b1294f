import type { TraceHeaders } from "../base/index.ts";
import type { TroupeEvent, TroupeEventOf } from "../state/index.ts";
import {
  modelAttributes,
  noteAttributes,
  settingsAttributes,
  type SpanOptions,
  shortName,
  type ToolEnd,
  type TurnEnd,
  toolAttributes,
  toolError,
  turnEndAttributes,
  turnError,
  turnStartAttributes,
  usageAttributes,
  type SpanAttributes,
  type SpanError,
} from "./span-attributes.ts";

interface Chat {
  readonly model: string;
  readonly provider?: string | undefined;
  readonly startedAt: number;
  readonly settings: SpanAttributes;
}

interface OpenTurn {
  /** The running or next model call; its span is created when the call has ended. */
  chat: Chat | null;
  chats: number;
  model: string | null;
  /** Calls with an open span. */
  readonly calls: Set<string>;
}

/**
 * Maps the events of one tree to spans: `invoke_agent` for a turn, below it `chat` for each model call and
 * `execute_tool` for each tool call; a subagent's turn is below the call that spawned it. Keys are the ids of turns and
 * calls. Independent of tracers, and never fails: an event that refers to an unknown object is omitted or has no
 * parent.
 */
export class SpanPlan {
  readonly #options: SpanOptions;
  readonly #turns = new Map<string, OpenTurn>();
  /** The parent span of each subagent's turns. */
  readonly #above = new Map<string, string>();

  constructor(options: SpanOptions) {
    this.#options = options;
  }

  /** Whether no turn of the tree is open. */
  get isAtRest(): boolean {
    return this.#turns.size === 0;
  }

  operations(event: TroupeEvent): SpanOperation[] {
    const { turnId } = event;
    if (turnId === null) return [];
    if (event.type === "turn.started") return this.#startTurn(event, turnId);
    const turn = this.#turns.get(turnId);
    if (!turn) {
      if (event.type === "subagent.ended") this.#above.delete(event.childId);
      return [];
    }
    switch (event.type) {
      case "step.started":
        return this.#startChat(event, turn);
      case "step.restarted":
        return this.#failedChat(event, turnId, turn);
      case "model.responded":
        return this.#answeredChat(event, turnId, turn);
      case "tool.started":
        return this.#startTool(event, turnId, turn);
      case "tool.completed":
      case "tool.failed":
        return this.#endTool(event, turnId, turn);
      case "subagent.spawned":
        return this.#spawn(event, { turnId, turn });
      case "subagent.ended":
        this.#above.delete(event.childId);
        return [];
      case "turn.completed":
      case "turn.stopped":
      case "turn.failed":
        return this.#endTurn(event, turnId, turn);
      default: {
        const attributes = noteAttributes(event);
        return attributes
          ? [{ type: "note", key: turnId, name: `troupe.${event.type}`, at: event.at, attributes }]
          : [];
      }
    }
  }

  #startTurn(event: TroupeEventOf<"turn.started">, key: string): SpanOperation[] {
    this.#turns.set(key, { chat: null, chats: 0, model: null, calls: new Set() });
    const parent = this.#above.get(event.agentId) ?? null;
    const name = `invoke_agent ${shortName(event.agentName)}`;
    const attributes = turnStartAttributes(event, this.#options);
    return [{ type: "start", key, parent, under: event.trace, name, kind: "internal", at: event.at, attributes }];
  }

  #endTurn(event: TurnEnd, key: string, turn: OpenTurn): SpanOperation[] {
    this.#turns.delete(key);
    const { at } = event;
    const error = turnError(event);
    const cut: SpanError = error ?? { type: "interrupted", message: "" };
    const attributes = {
      ...turnEndAttributes(event, this.#options),
      ...(turn.model === null ? {} : { "gen_ai.request.model": turn.model }),
    };
    return [
      ...[...turn.calls].map((call): SpanOperation => ({ type: "end", key: call, at, attributes: {}, error: cut })),
      ...(turn.chat
        ? this.#chat(event, { turn, turnId: key, startedAt: turn.chat.startedAt, attributes: {}, error: cut })
        : []),
      { type: "end", key, at, attributes, error },
    ];
  }

  #startChat(event: TroupeEventOf<"step.started">, turn: OpenTurn): SpanOperation[] {
    const { model, provider, at } = event;
    turn.chat = { model, provider, startedAt: at, settings: settingsAttributes(event) };
    turn.model ??= model;
    return [];
  }

  #answeredChat(event: TroupeEventOf<"model.responded">, turnId: string, turn: OpenTurn): SpanOperation[] {
    const { usage, costMicros, model, durationMs, at, finishReason } = event;
    const attributes = {
      ...usageAttributes(usage, costMicros),
      "gen_ai.response.model": model,
      ...(finishReason === undefined ? {} : { "gen_ai.response.finish_reasons": [finishReason] }),
    };
    turn.chat ??= { model, startedAt: at - durationMs, settings: {} };
    return this.#chat(event, { turn, turnId, startedAt: at - durationMs, attributes, error: null });
  }

  #failedChat(event: TroupeEventOf<"step.restarted">, turnId: string, turn: OpenTurn): SpanOperation[] {
    const { chat } = turn;
    if (!chat) return [];
    const { code, message } = event.error;
    const failed = { turn, turnId, startedAt: chat.startedAt, attributes: {}, error: { type: code, message } };
    const operations = this.#chat(event, failed);
    const { model, provider } = event.model === undefined ? chat : { model: event.model, provider: event.provider };
    turn.chat = { ...chat, model, provider, startedAt: event.retryAt };
    return operations;
  }

  /** The complete span of an ended model call. */
  #chat(
    event: TroupeEvent,
    call: {
      readonly turn: OpenTurn;
      readonly turnId: string;
      readonly startedAt: number;
      readonly attributes: SpanAttributes;
      readonly error: SpanError | null;
    },
  ): SpanOperation[] {
    const { turn, turnId, error } = call;
    const { model = "", provider, settings = {} } = turn.chat ?? {};
    turn.chat = null;
    // The turn ended before the call's next attempt started.
    if (call.startedAt > event.at) return [];
    turn.chats += 1;
    const key = `${turnId}/${turn.chats}`;
    const attributes = {
      ...modelAttributes(event, "chat", this.#options),
      ...(provider === undefined ? {} : { "gen_ai.provider.name": provider }),
      "gen_ai.request.model": model,
      ...settings,
      ...(event.step === null ? {} : { "troupe.step": event.step }),
    };
    const at = call.startedAt;
    return [
      { type: "start", key, parent: turnId, name: `chat ${shortName(model)}`, kind: "client", at, attributes },
      { type: "end", key, at: event.at, attributes: call.attributes, error },
    ];
  }

  #startTool(event: TroupeEventOf<"tool.started">, turnId: string, turn: OpenTurn): SpanOperation[] {
    const { callId, name, at, attempt } = event;
    if (turn.calls.has(callId)) {
      return [
        { type: "note", key: callId, name: "troupe.tool.started", at, attributes: { "troupe.attempt": attempt } },
      ];
    }
    return [this.#tool(event, { turnId, turn, callId, name, at, toolType: "function" })];
  }

  #endTool(event: ToolEnd, turnId: string, turn: OpenTurn): SpanOperation[] {
    const { callId, name, at, durationMs } = event;
    const error = toolError(event);
    // Refused calls and calls of client tools have no start event.
    const start: SpanOperation[] = turn.calls.has(callId)
      ? []
      : [this.#tool(event, { turnId, turn, callId, name, at: at - durationMs, toolType: "function" })];
    turn.calls.delete(callId);
    const attributes = { "gen_ai.tool.name": shortName(name) };
    return [...start, { type: "end", key: callId, at, name: `execute_tool ${shortName(name)}`, attributes, error }];
  }

  #spawn(
    event: TroupeEventOf<"subagent.spawned">,
    { turnId, turn }: { readonly turnId: string; readonly turn: OpenTurn },
  ): SpanOperation[] {
    const { childId, callId, definition, at } = event;
    this.#above.set(childId, callId ?? turnId);
    if (callId === null || turn.calls.has(callId)) return [];
    return [this.#tool(event, { turnId, turn, callId, name: definition, at, toolType: "extension" })];
  }

  #tool(
    event: TroupeEvent,
    call: {
      readonly turnId: string;
      readonly turn: OpenTurn;
      readonly callId: string;
      readonly name: string;
      readonly at: number;
      readonly toolType: string;
    },
  ): SpanOperation {
    const { turnId, callId, name, at, toolType } = call;
    call.turn.calls.add(callId);
    const attributes = toolAttributes(event, callId, name, toolType);
    return {
      type: "start",
      key: callId,
      parent: turnId,
      name: `execute_tool ${shortName(name)}`,
      kind: "internal",
      at,
      attributes,
    };
  }
}

/** An operation on a tracer as plain data; spans are identified by keys. */
export type SpanOperation =
  | {
      readonly type: "start";
      readonly key: string;
      /** Key of the parent span, which may be unknown; `null` for a span without a parent. */
      readonly parent: string | null;
      /** The parent span, if another process created it. */
      readonly under?: TraceHeaders | undefined;
      readonly name: string;
      /** `client`: a call to another system. */
      readonly kind: "client" | "internal";
      /** Milliseconds since the epoch. */
      readonly at: number;
      readonly attributes: SpanAttributes;
    }
  | {
      readonly type: "note";
      readonly key: string;
      readonly name: string;
      readonly at: number;
      readonly attributes: SpanAttributes;
    }
  | {
      readonly type: "end";
      readonly key: string;
      readonly at: number;
      /** Replaces the initial name. */
      readonly name?: string | undefined;
      readonly attributes: SpanAttributes;
      /** `null` unless the operation failed. */
      readonly error: SpanError | null;
    };
