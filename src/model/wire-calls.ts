import { shortHash } from "../base/index.ts";
import type { AnsweringAdapter, AssistantMessage, ModelTool, ToolCallRequest, ToolMessage } from "../state/index.ts";

/*
 * Providers refuse a request because of one invalid name or id in its history, and every later turn sends the history again. So messages
 * store the models' own names and ids. A request contains names that every provider accepts, the ids of its own server unchanged, and
 * derived ids for calls that other servers wrote.
 */

/** A model and its server, as stored in the messages that the model wrote. */
export interface WireWriter {
  readonly provider: string;
  readonly model: string;
  /** The address of the server. */
  readonly server: string;
}

const legalName = /^[a-zA-Z0-9_-]{1,64}$/;
/** The only form that all servers accept: Mistral accepts no other. */
const portableId = /^[a-zA-Z0-9]{9}$/;
const PORTABLE_LENGTH = 9;
const illegalCharacters = /[^a-zA-Z0-9_-]+/g;
const readableCharacters = 40;

/** The name if it is legal, else its readable characters with a digest of the full name, so that different names stay different. */
export function sentName(name: string): string {
  return legalName.test(name) ? name : digestedName(name, 0);
}

function digestedName(name: string, round: number): string {
  const readable = name.slice(0, readableCharacters).replaceAll(illegalCharacters, "_");
  // Hashes JSON, because all lone surrogates encode to the same bytes.
  return `${readable === "" ? "unnamed" : readable}-${shortHash(JSON.stringify([name, round]))}`;
}

/** An id at least as long as the one that is sent. */
export function countedId({ providerId }: Pick<ToolCallRequest, "providerId">): string {
  return providerId.padEnd(PORTABLE_LENGTH, "0");
}

function derivedId({ callId, providerId, sentCallId = callId }: CallIds, round: number): string {
  const hash = BigInt(`0x${shortHash(JSON.stringify([sentCallId, providerId, round]))}`);
  return hash.toString(36).padStart(PORTABLE_LENGTH, "0").slice(-PORTABLE_LENGTH);
}

type CallIds = Pick<ToolCallRequest, "callId" | "providerId" | "sentCallId">;

/** Whether the model wrote the message. Reasoning is sent back only to the model that wrote it, even if the server's address changed. */
export function isOwnModel({ reasoningBy }: AssistantMessage, reader: AnsweringAdapter): boolean {
  const writer = reasoningBy?.adapter ?? reasoningBy;
  return writer === undefined || (writer.provider === reader.provider && writer.model === reader.model);
}

/** Whether the reader's server wrote the ids in the message. Messages without `reasoningBy` count as its own. */
export function isOwnServer(message: AssistantMessage, reader: AnsweringAdapter): boolean {
  const server = message.reasoningBy?.adapter?.server;
  return isOwnModel(message, reader) && (server === undefined || server === reader.server);
}

/**
 * Names and ids of the calls of one request, message by message in order.
 * 1. A derived name never equals the name of a tool of the request.
 * 2. No two calls of the request have the same id, and a result has the id of its call.
 * 3. Ids that the reader's server wrote are sent unchanged, unless they are empty, repeated or longer than `longestId`.
 */
export class WireCalls {
  readonly #reader: WireWriter;
  readonly #keepsForeignIds: boolean;
  readonly #longestId: number;
  readonly #tools: readonly ModelTool[];
  readonly #used = new Set<string>();
  readonly #byCall = new Map<string, string>();
  readonly #byProvider = new Map<string, string>();

  constructor(
    reader: WireWriter,
    {
      tools = [],
      keepsForeignIds,
      longestId = Number.POSITIVE_INFINITY,
    }: {
      readonly tools?: readonly ModelTool[] | undefined;
      readonly keepsForeignIds: boolean;
      readonly longestId?: number | undefined;
    },
  ) {
    this.#reader = reader;
    this.#keepsForeignIds = keepsForeignIds;
    this.#longestId = longestId;
    this.#tools = tools;
  }

  nameOf(name: string): string {
    if (legalName.test(name)) return name;
    let round = 0;
    let sent = digestedName(name, round);
    while (this.#tools.some((tool) => tool.name === sent)) sent = digestedName(name, (round += 1));
    return sent;
  }

  /** The ids of the message's calls, in order; call it once per message. */
  idsOf(message: AssistantMessage): readonly string[] {
    const keeps = this.#keepsForeignIds || isOwnServer(message, this.#reader);
    return (message.toolCalls ?? []).map((call) => {
      const given = call.providerId.toWellFormed();
      const isKept = given.trim() !== "" && given.length <= this.#longestId && (keeps || portableId.test(given));
      let id = isKept ? given : derivedId(call, 0);
      for (let round = 1; this.#used.has(id); round += 1) id = derivedId(call, round);
      this.#used.add(id);
      this.#byCall.set(call.callId, id);
      this.#byProvider.set(call.providerId, id);
      return id;
    });
  }

  /** The id of the call that this message answers. */
  idOfResult(message: ToolMessage): string {
    const { callId, providerId } = message;
    return this.#byCall.get(callId) ?? this.#byProvider.get(providerId) ?? derivedId(message, 0);
  }
}
