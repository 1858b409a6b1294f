import { z } from "zod";
import { type Json, jsonSchema, type RequestKind, type RequestVerdict, take, takeJson } from "../state/index.ts";

// The values that a call notes, asks and bills while its code runs, so that the code can end and run again from where it was.

/** A question that a tool's code asks during its call. */
export interface AskInput {
  /**
   * `question`: a person answers with a text. `approval`: a person allows or refuses the action. `auth`: the program passes credentials
   * to `agent.resume({ auth })`; the code can then read them as `run.auth`.
   */
  readonly kind: "question" | "approval" | "auth";
  /** The question for a person: 1 to 10,000 characters. */
  readonly prompt: string;
  /** The subject of the question, for programs that show or decide it. Default: the arguments of the call. */
  readonly arguments?: Json | undefined;
  /** Whole milliseconds after which the question expires. Default: never. */
  readonly expiresAfterMs?: number | undefined;
}

/** The decision on the last question. */
export interface ToolAnswer {
  /** The request that was decided. */
  readonly requestId: string;
  /** The kind of the question. */
  readonly kind: RequestKind;
  /** `answered`, `approved`, `provided`, `rejected` or `expired`. */
  readonly verdict: RequestVerdict;
  /** The text of the answer; "" unless `answered`. */
  readonly text: string;
  /** The reason that the person gave; `null` if there is none. */
  readonly reason: string | null;
  /** The person who decided; `null` if the request expired, or if the person is unknown. */
  readonly by: string | null;
}

/** Usage elsewhere, as reported by a tool's code. */
export interface BillInput {
  /** Identifies the bill within the call: a key is counted once, however often the code runs. */
  readonly key: string;
  /** The name under which it is counted in `spent.byModel`. */
  readonly model: string;
  /** Prompt tokens. */
  readonly inputTokens: number;
  /** Output tokens. */
  readonly outputTokens: number;
  /** In dollars. Default: unknown, which makes the cost of the turn unknown too. */
  readonly cost?: number | undefined;
}

/**
 * Created by `run.ask()`; a tool returns it to wait for a decision. The code has ended then, and runs again with the decision in
 * `run.answer`.
 */
export class AskedRequest {
  readonly question: AskInput;

  constructor(question: AskInput) {
    this.question = question;
  }
}

const LONGEST_PROMPT = 10_000;
const LONGEST_NAME = 1_000;
const LONGEST_NOTE = 2 ** 20;
const MOST_TOKENS = 1_000_000_000_000;
const MOST_DOLLARS = 1_000_000_000;

const askSchema = z.strictObject({
  kind: z.enum(["question", "approval", "auth"]),
  prompt: z.string().min(1).max(LONGEST_PROMPT),
  arguments: jsonSchema.optional(),
  expiresAfterMs: z.number().int().positive().max(Number.MAX_SAFE_INTEGER).optional(),
});

const tokens = z.number().int().nonnegative().max(MOST_TOKENS);
const billSchema = z.strictObject({
  key: z.string().min(1).max(LONGEST_NAME),
  model: z.string().min(1).max(LONGEST_NAME),
  inputTokens: tokens,
  outputTokens: tokens,
  cost: z.number().nonnegative().max(MOST_DOLLARS).optional(),
});

// Parse values that user code passes to its run. Each throws `InvalidInputError` with the mistake and its path.

export function takeQuestion(given: unknown): AskInput {
  return take(askSchema, given, "the question that run.ask() was given", { maxSize: LONGEST_NOTE });
}

export function takeNote(given: unknown): Json {
  return takeJson(given, "the note that run.note() was given", { maxSize: LONGEST_NOTE });
}

export function takeBill(given: unknown): BillInput {
  return take(billSchema, given, "the usage that run.bill() was given");
}
