import { shortHash } from "../base/index.ts";
import type { ModelTool, ToolCallRequest, ToolMessage } from "../state/index.ts";

/*
 * Providers refuse a whole request for one invalid name or id in its history, and every later turn sends the history
 * again. So the messages keep the models' own names and ids, and requests carry derived ones that every provider accepts.
 */

const legalName = /^[a-zA-Z0-9_-]{1,64}$/;
const legalId = /^[a-zA-Z0-9_-]{1,40}$/;
const illegalCharacters = /[^a-zA-Z0-9_-]+/g;
const readableCharacters = 40;

/**
 * The name if it is legal, else its readable part with a digest of the whole name, so that different names stay
 * different.
 */
export function sentName(name: string): string {
  return legalName.test(name) ? name : digestedName(name, 0);
}

function digestedName(name: string, round: number): string {
  const readable = name.slice(0, readableCharacters).replaceAll(illegalCharacters, "_");
  // As JSON, because all lone surrogates are the same when encoded as bytes.
  return `${readable === "" ? "unnamed" : readable}-${shortHash(JSON.stringify([name, round]))}`;
}

/** The provider's id if it is legal, else one derived from ours. */
export function sentId({ callId, providerId }: Pick<ToolCallRequest, "callId" | "providerId">): string {
  return legalId.test(providerId) ? providerId : digestedId(callId, providerId, 0);
}

function digestedId(callId: string, providerId: string, round: number): string {
  return `call_${shortHash(JSON.stringify([callId, providerId, round]))}`;
}

/**
 * Names and ids of the calls of one request, message by message in order.
 * 1. A derived name never equals the name of a tool of the request.
 * 2. No two calls of the request have the same id, and a result has the id of its call.
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

  /** The id of a call; to be asked once per call. */
  idOf(call: ToolCallRequest): string {
    let round = 0;
    let id = sentId(call);
    while (this.#used.has(id)) id = digestedId(call.callId, call.providerId, (round += 1));
    this.#used.add(id);
    this.#byCall.set(call.callId, id);
    this.#byProvider.set(call.providerId, id);
    return id;
  }

  /** The id of the call that this message answers. */
  idOfResult(message: ToolMessage): string {
    const { callId, providerId } = message;
    return this.#byCall.get(callId) ?? this.#byProvider.get(providerId) ?? sentId(message);
  }
}
