import { InvalidInputError, PolicyRefusedError, RequestConflictError } from "../../errors/index.ts";
import type { Decide, Runtime, TurnRest } from "../../runtime/index.ts";
import type { AgentRequest, TroupeEvent } from "../../state/index.ts";
import { allRequests } from "../job/find-request.ts";
import { isTurnEnd } from "../view/reporter.ts";
import { askingLines } from "../view/request-lines.ts";
import type { LineInput } from "./line-input.ts";
import { editOf, type Reply, replyOf, replyPrompt } from "./reply.ts";

/** The terminal during the questions to a person. */
export interface Conversation {
  ask(request: AgentRequest, signal: AbortSignal): Promise<PersonsReply>;
  say(line: string): void;
  close(): void;
}

interface TerminalRequestsOptions {
  readonly runtime: Pick<Runtime, "stores" | "decide">;
  readonly rootAgentId: string;
  /** Name that is stored with the decisions. */
  readonly by: string;
  /** The command lines with which another person can decide a request. */
  readonly commandsFor: (request: AgentRequest) => readonly string[];
  readonly converse: () => Conversation;
}

/**
 * Asks the person at the terminal about the requests of one tree, one after the other, as soon as they are opened.
 * Owns: which requests were postponed, and whether the input has ended. Does not own: the terminal, the turn.
 *
 * Invariants
 * 1. One question at a time. A question is withdrawn when its request is decided elsewhere or its turn ends.
 * 2. A postponed request is not asked again until `askAgain`.
 * 3. After a refused decision the request remains open: it is asked again until it is decided in this process or
 *    elsewhere.
 */
export class TerminalRequests {
  readonly #options: TerminalRequestsOptions;
  readonly #putOff = new Set<string>();
  #asked: { readonly request: AgentRequest; readonly controller: AbortController } | undefined;
  #looking: Promise<void> | undefined;
  #hasNews = false;
  #isAbandoned = false;

  constructor(options: TerminalRequestsOptions) {
    this.#options = options;
  }

  /** Receives every event of the tree after its commit. */
  event(event: TroupeEvent): void {
    if (event.cursor === null) return;
    const isOver = (request: Pick<AgentRequest, "requestId" | "turnId">): boolean =>
      (event.type === "request.decided" && event.requestId === request.requestId) ||
      (isTurnEnd(event) && event.turnId === request.turnId);
    if (this.#asked && isOver(this.#asked.request)) this.#asked.controller.abort();
    // `rest` reads the store again, and reports a failure.
    if (event.type === "request.opened") this.#look().catch(() => {});
  }

  /** Asks again about postponed requests. */
  askAgain(): void {
    this.#putOff.clear();
  }

  /**
   * Waits for the turn to end or to wait, while its requests are decided here. A turn counts as waiting only if the
   * person postponed its requests. `settled` is called again after each decision.
   */
  async rest(settled: () => Promise<TurnRest>): Promise<TurnRest> {
    for (;;) {
      const rest = await settled();
      // Lets the person finish the current reply.
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
    const asked = new Set<string>();
    try {
      while (this.#hasNews && !this.#isAbandoned) {
        this.#hasNews = false;
        const open = (await this.#openRequests()).filter(({ requestId }) => !this.#putOff.has(requestId));
        const [next] = open;
        if (next === undefined) continue;
        this.#hasNews = true;
        conversation ??= this.#options.converse();
        for (const { requestId } of open) asked.delete(requestId);
        const total = asked.size + open.length;
        if (total > 1) conversation.say(`Request ${asked.size + 1} of ${total}:`);
        asked.add(next.requestId);
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
      conversation.say("(withdrawn: the request was decided elsewhere, or its turn has ended)");
    else await this.#decide(request, reply, conversation);
  }

  async #decide(
    request: AgentRequest,
    reply: Exclude<PersonsReply, string>,
    conversation: Conversation,
  ): Promise<void> {
    const { requestId, argumentsHash } = request;
    const { runtime, by, commandsFor } = this.#options;
    try {
      await runtime.decide(requestId, { ...reply, by, argumentsHash });
    } catch (error) {
      const isRefused = error instanceof PolicyRefusedError;
      if (!isRefused && !(error instanceof InvalidInputError || error instanceof RequestConflictError)) throw error;
      conversation.say(error.message);
      if (!isRefused) return;
      conversation.say("This process waits. Decide as an authorized person from another terminal:");
      for (const line of commandsFor(request)) conversation.say(`    ${line}`);
    }
  }
}

/** The reply: a decision, postponed, the input has ended, or the question was withdrawn. */
export type PersonsReply = Decide | "later" | "ended" | "aborted";

/** Shows a request and asks until the reply is clear. */
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
