import { InvalidInputError, RequestConflictError } from "../../errors/index.ts";
import type { Decide, Runtime, TurnRest } from "../../runtime/index.ts";
import type { AgentRequest, TroupeEvent } from "../../state/index.ts";
import { allRequests } from "../job/find-request.ts";
import { askingLines } from "../view/request-lines.ts";
import type { LineInput } from "./line-input.ts";
import { editOf, type Reply, replyOf, replyPrompt } from "./reply.ts";

/** A person's attention, from the first question until there is none left. */
export interface Conversation {
  ask(request: AgentRequest, signal: AbortSignal): Promise<PersonsReply>;
  say(line: string): void;
  close(): void;
}

interface InlineDeskOptions {
  readonly runtime: Pick<Runtime, "stores" | "decide">;
  readonly rootAgentId: string;
  /** Kept with what is decided. */
  readonly by: string;
  readonly converse: () => Conversation;
}

/**
 * Asks the person at the terminal about the requests of one tree, one after the other, as soon as they are opened.
 * Owns: which requests were put off, whether anybody is there to ask. Does not own: the terminal, the turn.
 *
 * Invariants
 * 1. One question at a time. One that is decided elsewhere, or whose turn ends, is taken back.
 * 2. What was put off is not asked again until `askAgain`.
 */
export class InlineDesk {
  readonly #options: InlineDeskOptions;
  readonly #putOff = new Set<string>();
  #asked: { readonly request: AgentRequest; readonly controller: AbortController } | undefined;
  #looking: Promise<void> | undefined;
  #hasNews = false;
  #isAbandoned = false;

  constructor(options: InlineDeskOptions) {
    this.#options = options;
  }

  /** To be told every event of the tree, after its commit. */
  event(event: TroupeEvent): void {
    if (event.cursor === null) return;
    const isOver = (request: Pick<AgentRequest, "requestId" | "turnId">): boolean =>
      (event.type === "request.decided" && event.requestId === request.requestId) ||
      (isTurnEnd(event) && event.turnId === request.turnId);
    if (this.#asked && isOver(this.#asked.request)) this.#asked.controller.abort();
    // A failure shows when the turn comes to rest and the store is read again.
    if (event.type === "request.opened") this.#look().catch(() => {});
  }

  /** Asks again what was put off. */
  askAgain(): void {
    this.#putOff.clear();
  }

  /**
   * How a turn comes to rest when its requests are decided here: it waits for somebody only when nobody here decides.
   * `settled` is asked again after each decision.
   */
  async rest(settled: () => Promise<TurnRest>): Promise<TurnRest> {
    for (;;) {
      const rest = await settled();
      // Whoever is being asked something is let finish.
      if (rest.status !== "waiting" || rest.reason !== "request") {
        await this.#looking;
        return rest;
      }
      await this.#look();
      const open = new Set((await this.#openRequests()).map(({ requestId }) => requestId));
      if (rest.requests.every(({ requestId }) => open.has(requestId))) return rest;
    }
  }

  #openRequests(): Promise<AgentRequest[]> {
    const { runtime, rootAgentId } = this.#options;
    return allRequests(runtime.stores, { rootAgentId, status: "open" });
  }

  async #look(): Promise<void> {
    this.#hasNews = true;
    this.#looking ??= this.#askAll().finally(() => {
      this.#looking = undefined;
    });
    await this.#looking;
  }

  async #askAll(): Promise<void> {
    let conversation: Conversation | undefined;
    try {
      while (this.#hasNews && !this.#isAbandoned) {
        this.#hasNews = false;
        const next = (await this.#openRequests()).find(({ requestId }) => !this.#putOff.has(requestId));
        if (next === undefined) continue;
        this.#hasNews = true;
        conversation ??= this.#options.converse();
        await this.#ask(next, conversation);
      }
    } finally {
      conversation?.close();
    }
  }

  async #ask(request: AgentRequest, conversation: Conversation): Promise<void> {
    const controller = new AbortController();
    this.#asked = { request, controller };
    const reply = await conversation.ask(request, controller.signal);
    this.#asked = undefined;
    if (reply === "later") this.#putOff.add(request.requestId);
    else if (reply === "ended") this.#isAbandoned = true;
    else if (reply === "aborted")
      conversation.say("(not asked any more: it was decided elsewhere, or its turn has ended)");
    else await this.#decide(request, reply, conversation);
  }

  async #decide(
    request: AgentRequest,
    reply: Exclude<PersonsReply, string>,
    conversation: Conversation,
  ): Promise<void> {
    const { requestId, argumentsHash } = request;
    const { runtime, by } = this.#options;
    try {
      await runtime.decide(requestId, { ...reply, by, argumentsHash });
    } catch (error) {
      if (!(error instanceof InvalidInputError || error instanceof RequestConflictError)) throw error;
      conversation.say(error.message);
    }
  }
}

function isTurnEnd({ type }: TroupeEvent): boolean {
  return type === "turn.completed" || type === "turn.stopped" || type === "turn.failed";
}

/** What a person said: a decision, not now, nothing any more, or that it is not asked any more. */
export type PersonsReply = Decide | "later" | "ended" | "aborted";

/** Shows a request and asks until the reply is one. */
export async function askPerson(
  input: Pick<LineInput, "next">,
  say: (line: string) => void,
  request: AgentRequest,
  signal: AbortSignal,
): Promise<PersonsReply> {
  askingLines(request).forEach(say);
  for (;;) {
    const read = await input.next(replyPrompt(request), { signal });
    if (typeof read !== "object") return read;
    let reply: Reply = replyOf(request, read.line);
    if (reply.type === "edit") {
      const edited = await input.next("Arguments as JSON: ", { signal, prefill: JSON.stringify(request.arguments) });
      if (typeof edited !== "object") return edited;
      reply = editOf(edited.line);
    }
    if (reply.type === "decide") return reply.decide;
    if (reply.type === "later") return "later";
    if (reply.type === "unclear") say(reply.hint);
  }
}
