import { z } from "zod";
import { type Json, jsonSchema, type RequestKind, type RequestVerdict, take, takeJson } from "../state/index.ts";

// What a call keeps, asks and counts while its code runs, so that the code may end and run again without losing its place.

/** Something that a tool's code asks while its call runs. */
export interface AskInput {
  /**
   * `question`: a person gives an answer in words. `approval`: a person allows or refuses it. `auth`: the program gives
   * credentials by `agent.resume({ auth })`; the code then has them as `run.auth`.
   */
  readonly kind: "question" | "approval" | "auth";
  /** In words for a person: 1 to 10,000 characters. */
  readonly prompt: string;
  /** What the question is about, for programs that show or decide it. Default: the arguments of the call. */
  readonly arguments?: Json | undefined;
  /** Whole milliseconds after which it expires. Default: never. */
  readonly expiresAfterMs?: number | undefined;
}

/** What became of the last question. */
export interface ToolAnswer {
  /** The request that was decided. */
  readonly requestId: string;
  /** What was asked for. */
  readonly kind: RequestKind;
  /** `answered`, `approved`, `provided`, `rejected` or `expired`. */
  readonly verdict: RequestVerdict;
  /** The answer in words; "" unless `answered`. */
  readonly text: string;
  /** Why, in the words of the person who decided; `null` if none were given. */
  readonly reason: string | null;
  /** The person who decided; `null` if the request expired, or if the person is not known. */
  readonly by: string | null;
}

/** Usage elsewhere, as a tool's code was told. */
export interface BillInput {
  /** Names the bill within the call: the same key is counted once, however often the code runs. */
  readonly key: string;
  /** Under which name it is counted in `spent.byModel`. */
  readonly model: string;
  /** Tokens of its prompts. */
  readonly inputTokens: number;
  /** Tokens of its answers. */
  readonly outputTokens: number;
  /** In dollars. Default: not known, so that the cost of the turn is not known either. */
  readonly cost?: number | undefined;
}

/**
 * A tool returns it to wait for a decision; `run.ask()` makes it. The code has ended then, and runs again with the decision in
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

// Parse values that user code hands to its run. Each throws `InvalidInputError` with the mistake and its place.

export function takeQuestion(given: unknown): AskInput {
  return take(askSchema, given, "the question that run.ask() was given", { maxSize: LONGEST_NOTE });
}

export function takeNote(given: unknown): Json {
  return takeJson(given, "the note that run.note() was given", { maxSize: LONGEST_NOTE });
}

export function takeBill(given: unknown): BillInput {
  return take(billSchema, given, "the usage that run.bill() was given");
}
