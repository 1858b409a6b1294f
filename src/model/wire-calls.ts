import { shortHash } from "../base/index.ts";
import type { ModelTool, ToolCallRequest, ToolMessage } from "../state/index.ts";

/*
 * Providers refuse a whole request for one name or id in its history that they do not like, and a history comes again with
 * every later turn. So what models wrote stays in the messages as it was, and what is sent is legal everywhere.
 */

const legalName = /^[a-zA-Z0-9_-]{1,64}$/;
const legalId = /^[a-zA-Z0-9_-]{1,40}$/;
const illegalCharacters = /[^a-zA-Z0-9_-]+/g;
const readableCharacters = 40;

/** The name itself where it is legal, else what is readable of it with a digest of all: other names give others. */
export function sentName(name: string): string {
  return legalName.test(name) ? name : digestedName(name, 0);
}

function digestedName(name: string, round: number): string {
  const readable = name.slice(0, readableCharacters).replaceAll(illegalCharacters, "_");
  // As JSON, since as bytes all lone surrogates would be the same.
  return `${readable === "" ? "unnamed" : readable}-${shortHash(JSON.stringify([name, round]))}`;
}

/** The provider's id where it is legal, else one that is made from ours. */
export function sentId({ callId, providerId }: Pick<ToolCallRequest, "callId" | "providerId">): string {
  return legalId.test(providerId) ? providerId : digestedId(callId, providerId, 0);
}

function digestedId(callId: string, providerId: string, round: number): string {
  return `call_${shortHash(JSON.stringify([callId, providerId, round]))}`;
}

/**
 * Names and ids of the calls of one request, message by message in their order.
 * 1. A name that is made here is that of no tool of the request.
 * 2. No two calls of the request have one id, and a result has the id of its call.
 */
export class WireCalls {
  readonly #tools: ReadonlySet<string>;
  readonly #used = new Set<string>();
  readonly #byCall = new Map<string, string>();
  readonly #byProvider = new Map<string, string>();

  constructor(tools: readonly ModelTool[] = []) {
    this.#tools = new Set(tools.map(({ name }) => name));
  }

  nameOf(name: string): string {
    if (legalName.test(name)) return name;
    let round = 0;
    let sent = digestedName(name, round);
    while (this.#tools.has(sent)) sent = digestedName(name, (round += 1));
    return sent;
  }

  /** Of a call, once. */
  idOf(call: ToolCallRequest): string {
    let round = 0;
    let id = sentId(call);
    while (this.#used.has(id)) id = digestedId(call.callId, call.providerId, (round += 1));
    this.#used.add(id);
    this.#byCall.set(call.callId, id);
    this.#byProvider.set(call.providerId, id);
    return id;
  }

  /** Of the call that this message answers. */
  idOfResult(message: ToolMessage): string {
    const { callId, providerId } = message;
    return this.#byCall.get(callId) ?? this.#byProvider.get(providerId) ?? sentId(message);
  }
}
