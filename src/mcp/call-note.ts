import { z } from "zod";
import { type Json, type JsonObject, jsonObjectSchema } from "../state/index.ts";

/** A request of a server for input, in the protocol's form. */
export interface ServerInput {
  readonly method: string;
  readonly params?: JsonObject | undefined;
}

/** Longest state of a server, in UTF-16 units. */
const LONGEST_STATE = 100_000;
/** Longest requests of one round, in characters of their JSON. */
const LONGEST_INPUTS = 500_000;
const MOST_INPUTS = 20;

const inputSchema = z.object({ method: z.string().max(200), params: jsonObjectSchema.optional() });
const inputsSchema = z.record(z.string().max(1_000), inputSchema);
/** The question that a person was asked last. `taken`: the request whose decision was used before it was asked. */
const askedSchema = z.object({ key: z.string(), tries: z.number(), taken: z.string().nullable() });

const noteSchema = z.discriminatedUnion("phase", [
  /**
   * The server waits for input, and nothing was sent since. `sent`: the call was, or was about to be, continued. `refused`: it is not
   * continued.
   */
  z.object({
    phase: z.enum(["parked", "sent", "refused"]),
    round: z.number(),
    /** Number of model calls for the server. */
    samples: z.number(),
    state: z.string().nullable(),
    inputs: inputsSchema,
    responses: z.record(z.string(), jsonObjectSchema),
    asked: askedSchema.nullable(),
  }),
  /** The call is open in a process, which answers the server's own requests. */
  z.object({
    phase: z.literal("held"),
    heldId: z.string(),
    round: z.number(),
    samples: z.number(),
    asked: askedSchema,
  }),
]);

/** What is stored about a call that a server has interrupted with a question. */
export type CallNote = z.infer<typeof noteSchema>;
export type ParkedNote = Extract<CallNote, { readonly phase: "parked" | "sent" | "refused" }>;
export type HeldNote = Extract<CallNote, { readonly phase: "held" }>;

/** The note of a call; `undefined` before the first. */
export function callNoteOf(noted: Json): CallNote | undefined {
  const read = noteSchema.safeParse(noted);
  return read.success ? read.data : undefined;
}

/** The note for a result of a server that needs input; or what is wrong with it, as the rest of a sentence about the server. */
export function parkedNoteOf(
  { inputRequests = {}, requestState }: { readonly inputRequests?: unknown; readonly requestState?: unknown },
  before: CallNote | undefined,
): ParkedNote | { readonly problem: string } {
  const inputs = inputsSchema.safeParse(inputRequests);
  if (!inputs.success) return { problem: "asked for input in a form that the protocol does not have" };
  if (Object.keys(inputs.data).length > MOST_INPUTS)
    return { problem: `asked for more than ${MOST_INPUTS} inputs at once` };
  if (JSON.stringify(inputs.data).length > LONGEST_INPUTS) {
    return { problem: `asked with more than ${LONGEST_INPUTS} characters` };
  }
  const state = typeof requestState === "string" ? requestState : null;
  if (state !== null && state.length > LONGEST_STATE) {
    return { problem: `wants a state of more than ${LONGEST_STATE} characters to be kept` };
  }
  const round = (before?.round ?? 0) + 1;
  const samples = before?.samples ?? 0;
  return { phase: "parked", round, samples, state, inputs: inputs.data, responses: {}, asked: null };
}
