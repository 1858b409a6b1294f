import { type Agent, noCursor } from "../../runtime/index.ts";
import { type Content, dataOf, fileMark, type Message, type TroupeEvent } from "../../state/index.ts";
import type { Caller } from "../core/caller.ts";
import { messageOfEvent, storedTreeEvents } from "../core/turn-events.ts";
import { requestOfEvent, spendingByTurn } from "./chat-stream.ts";
import { MessageParts, type UiMessage, type UiPart } from "./message-parts.ts";
import { MessageTranslation, newClient } from "./message-translation.ts";

/**
 * The conversation of an agent as UI messages, for `messages` of `useChat`. Each answer is made of the same chunks as its stream.
 * `last`: only the messages of this number of turns.
 */
export async function storedChat(caller: Caller, agent: Agent, last: number): Promise<readonly UiMessage[]> {
  const { runtime, tenant } = caller;
  const { rootAgentId } = agent;
  const turns = new StoredTurns(caller, rootAgentId);
  for await (const event of storedTreeEvents(caller, rootAgentId, noCursor)) turns.take(event);
  const messages = await runtime.stores.messages({ tenant, agentId: rootAgentId });
  const inputs = new Map(messages.flatMap((message) => (message.role === "user" ? [[message.id, message]] : [])));
  const found: UiMessage[] = [];
  const shown = turns.all.slice(-last);
  if (shown.length === turns.all.length) found.push(...messages.flatMap((message) => seedMessage(message)));
  for (const { turnId, prompt, events } of shown) {
    const id = `${turnId}:in`;
    const content = inputs.get(id)?.content ?? prompt;
    if (content !== "") found.push({ id, role: "user", parts: userParts(content) });
    found.push(await turns.answerOf({ turnId, events }));
  }
  return found;
}

interface StoredTurn {
  readonly turnId: string;
  readonly prompt: string;
  readonly events: TroupeEvent[];
}

/** The events of a tree by the turn of its root that they belong to. */
class StoredTurns {
  readonly #caller: Caller;
  readonly #rootAgentId: string;
  readonly #turns = new Map<string, StoredTurn>();
  /** The turn of the root under which an agent was spawned. */
  readonly #turnOfAgent = new Map<string, string>();
  #spending: ReturnType<typeof spendingByTurn> | undefined;

  constructor(caller: Caller, rootAgentId: string) {
    this.#caller = caller;
    this.#rootAgentId = rootAgentId;
  }

  take(event: TroupeEvent): void {
    const isRoot = event.agentId === this.#rootAgentId;
    if (event.type === "conversation.cleared" && isRoot) this.#turns.clear();
    const turnId = isRoot ? event.turnId : this.#turnOfAgent.get(event.agentId);
    if (turnId === null || turnId === undefined) return;
    if (event.type === "subagent.spawned") this.#turnOfAgent.set(event.childId, turnId);
    if (event.type === "turn.started" && isRoot) this.#turns.set(turnId, { turnId, prompt: event.prompt, events: [] });
    this.#turns.get(turnId)?.events.push(event);
  }

  get all(): readonly StoredTurn[] {
    return [...this.#turns.values()];
  }

  async answerOf({ turnId, events }: Pick<StoredTurn, "turnId" | "events">): Promise<UiMessage> {
    const caller = this.#caller;
    this.#spending ??= spendingByTurn(caller, this.#rootAgentId);
    const models = (await this.#spending).get(turnId) ?? {};
    const translation = new MessageTranslation({ turnId, rootAgentId: this.#rootAgentId, client: newClient });
    const parts = new MessageParts();
    for (const chunk of translation.start()) parts.take(chunk);
    for (const event of events) {
      const [message, request] = [await messageOfEvent(caller, event), await requestOfEvent(caller, event)];
      for (const chunk of translation.take(event, { message, request })) parts.take(chunk);
    }
    const ending = translation.hasEnded ? translation.end(models) : await this.#restOf(turnId, translation);
    for (const chunk of ending) parts.take(chunk);
    return parts.message;
  }

  /** The end of the message of an open turn; nothing while it runs. */
  async #restOf(turnId: string, translation: MessageTranslation) {
    const models = (await this.#spending)?.get(turnId) ?? {};
    const { turn } = await this.#caller.turn(turnId);
    const now = await turn.current();
    if (now.status !== "waiting") return [];
    return now.reason === "paused" ? translation.pause(models) : translation.wait(now.requests, models);
  }
}

/** A message that the agent was created with. */
function seedMessage({ id, role, content }: Message): readonly UiMessage[] {
  if (!id.startsWith("seed:") || (role !== "user" && role !== "assistant")) return [];
  return [{ id, role, parts: userParts(content) }];
}

function userParts(content: Content): readonly UiPart[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return content.map((part): UiPart => {
    if (part.type === "text") return { type: "text", text: part.text };
    if (part.type === "image") return { type: "file", mediaType: imageType(part.url), url: part.url };
    if (part.url === undefined) return { type: "text", text: fileMark(part) };
    const named = part.name === undefined ? {} : { filename: part.name };
    return { type: "file", mediaType: part.mediaType, url: part.url, ...named };
  });
}

function imageType(url: string): string {
  return dataOf(url) === undefined ? "image/*" : (/^data:([^;,]+)/i.exec(url)?.[1] ?? "image/*");
}
