import type { CallToolResult, InputRequiredResult, InputResponses } from "@modelcontextprotocol/client";
import { AgentStopError, OutcomeUnknownError } from "../errors/index.ts";
import type { EffectClass, JsonObject } from "../state/index.ts";
import type { AskedRequest, AskInput, Reconciliation, RunContext, ToolAnswer } from "../tools/index.ts";
import { type CallNote, callNoteOf, type HeldNote, type ParkedNote, parkedNoteOf } from "./call-note.ts";
import { HeldCall, type HeldParts, type HeldRequest } from "./held-call.ts";
import type { ServerInputs } from "./server-inputs.ts";

/** A result of a server: the tool's, or a request for input. */
export type McpResult = CallToolResult | InputRequiredResult;
export type OpenCall = HeldCall<McpResult>;

/** Answers to a server's requests for input, and its state. */
export interface Continuation {
  readonly responses: InputResponses;
  readonly state: string | undefined;
}

export interface CallInPartsOptions {
  readonly server: string;
  readonly effect: EffectClass;
  readonly inputs: ServerInputs;
  readonly send: (
    parts: HeldParts & { readonly context: OpenCall; readonly input?: Continuation },
  ) => Promise<McpResult>;
}

/** Calls of this process that wait for a person, by the id in their note. */
const heldCalls = new Map<string, OpenCall>();

/** How long a call of the older era stays open for a person, in milliseconds. */
const LONGEST_HOLD_MS = 86_400_000;
/** How often a server may ask for input in one call. */
const MOST_ROUNDS = 10;

/**
 * A call of a tool whose server may ask for input. A server of the newer era returns its requests and a state: both are noted, and the
 * call is continued from its note, in any process. A server of the older era asks while the call is under way, so that the call stays
 * open in this process while a person decides.
 */
export class CallInParts {
  readonly #options: CallInPartsOptions;
  readonly #run: RunContext;
  #note: CallNote | undefined;

  constructor(options: CallInPartsOptions, run: RunContext) {
    this.#options = options;
    this.#run = run;
    this.#note = callNoteOf(run.noted);
  }

  /** Returns the tool's result or a question. Rejects like `McpConnection.call`, and with `OutcomeUnknownError`, `AgentStopError`. */
  async perform(): Promise<CallToolResult | AskedRequest> {
    let call: OpenCall | undefined;
    if (this.#note?.phase === "held") {
      call = heldCalls.get(this.#note.heldId);
      heldCalls.delete(this.#note.heldId);
      if (call === undefined && this.#options.effect === "once") {
        throw new OutcomeUnknownError(
          `the process that held the call open for a question of the MCP server "${this.#options.server}" has ended`,
        );
      }
      if (call === undefined) this.#note = undefined;
    }
    for (;;) {
      if (call === undefined) {
        const before = await this.#fulfilled();
        if (before !== undefined) return before;
        const input = continuationOf(this.#note);
        call = new HeldCall((parts, context) =>
          this.#options.send({ ...parts, context, ...(input === undefined ? {} : { input }) }),
        );
      }
      const end = await this.#followed(call).catch((error: unknown) => {
        call?.abort();
        throw error;
      });
      if (!isInputRequired(end)) return end;
      call = undefined;
      const parked = parkedNoteOf(end, this.#note);
      if ("problem" in parked) return this.#refused(parked.problem);
      if (parked.round > MOST_ROUNDS) return this.#refused(`asked for input more than ${MOST_ROUNDS} times`);
      await this.#keep(parked);
    }
  }

  /** Whether the code can continue a `once` call from its note. */
  reconcile(): Reconciliation {
    switch (this.#note?.phase) {
      case "parked":
        return { resume: true };
      case "refused":
        return { done: false };
      default:
        return { unknown: true };
    }
  }

  /** Ends a call that waits for a person in this process. */
  cancel(): void {
    if (this.#note?.phase !== "held") return;
    heldCalls.get(this.#note.heldId)?.abort();
    heldCalls.delete(this.#note.heldId);
  }

  async #keep<Note extends CallNote>(note: Note): Promise<Note> {
    await this.#run.note(note as unknown as JsonObject);
    this.#note = note;
    return note;
  }

  /** Answers the requests in the note, and notes that the call is about to be continued. Returns a question or a refusal first. */
  async #fulfilled(): Promise<CallToolResult | AskedRequest | undefined> {
    if (this.#note === undefined || this.#note.phase === "held") return undefined;
    let note: ParkedNote = this.#note;
    if (note.phase === "refused") return this.#refused("asked for a model call, which a limit did not allow");
    for (const [key, input] of Object.entries(note.inputs)) {
      if (Object.hasOwn(note.responses, key)) continue;
      const answer = this.#answerFor(note, key);
      const { samples, asked } = note;
      const tries = asked?.key === key ? asked.tries : 0;
      const soFar = { run: this.#run, answer, tries, samples };
      const step = await this.#options.inputs.step(input, soFar).catch(async (error: unknown) => {
        // The server has not been answered, so that the call has not gone on.
        if (error instanceof AgentStopError) await this.#keep({ ...note, phase: "refused" });
        throw error;
      });
      if (step.type === "refused") return this.#refused(step.why);
      if (step.type === "asking") {
        note = await this.#keep({
          ...note,
          asked: { key, tries: tries + 1, taken: this.#run.answer?.requestId ?? null },
        });
        return this.#run.ask(step.question);
      }
      const counted = input.method === "sampling/createMessage" ? samples + 1 : samples;
      note = await this.#keep({ ...note, samples: counted, responses: { ...note.responses, [key]: step.response } });
    }
    await this.#keep({ ...note, phase: "sent" });
    return undefined;
  }

  /** The decision on the question that was asked for this request; `null` if there is none yet. */
  #answerFor({ asked }: Pick<CallNote, "asked">, key: string): ToolAnswer | null {
    const { answer } = this.#run;
    return answer === null || asked?.key !== key || asked.taken === answer.requestId ? null : answer;
  }

  /** Waits for the call's end; requests of the server are answered meanwhile. */
  async #followed(call: OpenCall): Promise<McpResult | AskedRequest> {
    for (;;) {
      const next = await call.next({ signal: this.#run.signal, onProgress: (update) => this.#run.progress(update) });
      if ("result" in next) return next.result;
      const question = await this.#answered(call, next.request);
      if (question === undefined) continue;
      heldCalls.set(call.id, call);
      forgetLater(call);
      return this.#run.ask(question);
    }
  }

  /** Answers or refuses a request of the server, unless a person has to decide first: returns the question then. */
  async #answered(call: OpenCall, request: HeldRequest): Promise<AskInput | undefined> {
    const note = this.#note?.phase === "held" ? this.#note : undefined;
    const answer = note === undefined ? null : this.#answerFor(note, call.id);
    const { round = 0, samples = 0 } = note ?? {};
    const tries = note?.asked.tries ?? 0;
    const before = { phase: "held", heldId: call.id, round, samples } as const;
    const taken = this.#run.answer?.requestId ?? null;
    let reply: () => void;
    try {
      const step = await this.#options.inputs.step(request.input, { run: this.#run, answer, tries, samples });
      const why = round >= MOST_ROUNDS ? `asked more than ${MOST_ROUNDS} times` : step.type === "refused" && step.why;
      if (step.type === "asking" && why === false) {
        await this.#keep<HeldNote>({ ...before, asked: { key: call.id, tries: tries + 1, taken } });
        return step.question;
      }
      reply =
        step.type === "answered" && why === false
          ? () => request.answer(step.response)
          : () => request.refuse(new Error(`The client refuses: the server ${String(why)}.`));
    } catch (error) {
      if (!(error instanceof AgentStopError)) throw error;
      reply = () => request.refuse(new Error("The client refuses: no more model calls are allowed."));
    }
    const sampled = request.input.method === "sampling/createMessage" ? 1 : 0;
    // Noted first, so that the decision is not used for the next request.
    const asked = { key: call.id, tries: 0, taken };
    await this.#keep<HeldNote>({ ...before, round: round + 1, samples: samples + sampled, asked });
    reply();
    return undefined;
  }

  /** A known failure: the server was not answered, so that it cannot go on. */
  #refused(why: string): CallToolResult {
    const text = `The MCP server "${this.#options.server}" ${why}. The call was not continued.`;
    return { content: [{ type: "text", text }], isError: true };
  }
}

/** Ends a call whose agent has continued in another process: this process does not notice that. */
function forgetLater(call: OpenCall): void {
  const timer = setTimeout(() => {
    if (heldCalls.delete(call.id)) call.abort();
  }, LONGEST_HOLD_MS);
  timer.unref();
}

function continuationOf(note: CallNote | undefined): Continuation | undefined {
  if (note?.phase !== "sent") return undefined;
  return { responses: note.responses as InputResponses, state: note.state ?? undefined };
}

function isInputRequired(result: McpResult | AskedRequest): result is InputRequiredResult {
  return "resultType" in result && result.resultType === "input_required";
}
