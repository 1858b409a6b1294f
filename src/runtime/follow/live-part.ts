import { z } from "zod";
import {
  type DeepReadonly,
  deepFreeze,
  countSchema,
  integerSchema,
  positiveSchema,
  textOrNullSchema,
  textSchema,
} from "../../base/index.ts";
import {
  cursorText,
  forecastFields,
  jsonSchema,
  parseCursor,
  type TroupeEvent,
  writtenCallSchema,
} from "../../state/index.ts";

const common = {
  agentId: textSchema,
  agentName: textSchema,
  parentAgentId: textOrNullSchema,
  rootAgentId: textSchema,
  sessionId: textOrNullSchema,
  turnId: textSchema,
  step: integerSchema,
  attempt: positiveSchema,
  at: integerSchema,
  /** The last durable event of its agent when the part was created. */
  cursor: z.string().refine((text) => parseCursor(text) !== undefined),
};
const said = {
  ...common,
  /** Seq of the entry that requested the model call: it identifies the call and orders it among others. */
  seq: integerSchema,
};
const piece = { ...said, offset: countSchema, text: textSchema };

/** One live part, as sent to followers: a piece of an answer, its value or whole text so far, progress, a warning, or a forecast. */
export const livePartSchema = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("text"), ...piece }),
  z.object({ kind: z.literal("reasoning"), ...piece }),
  z.object({ kind: z.literal("call"), ...piece, index: countSchema, callId: textSchema, name: textSchema }),
  z.object({ kind: z.literal("output"), ...said, output: jsonSchema }),
  z.object({
    kind: z.literal("whole"),
    ...said,
    text: textSchema,
    reasoning: textOrNullSchema,
    /** Absent if the answer has no calls so far. */
    calls: z.array(writtenCallSchema).optional(),
  }),
  z.object({
    kind: z.literal("progress"),
    ...common,
    callId: textSchema,
    name: textSchema,
    update: jsonSchema,
  }),
  z.object({ kind: z.literal("warning"), ...common, code: textSchema, message: textSchema }),
  z.object({
    kind: z.literal("forecast"),
    ...common,
    ...forecastFields,
  }),
]);
export type LivePart = DeepReadonly<z.infer<typeof livePartSchema>>;
/** Live parts that belong to no answer and no call; they are sent as they are. */
export type LiveNotice = LivePartOf<"warning" | "forecast">;

export function isNotice(part: LivePart): part is LiveNotice {
  return part.kind === "warning" || part.kind === "forecast";
}

export type LivePartOf<Kind extends LivePart["kind"]> = Extract<LivePart, { kind: Kind }>;

/** The journal row that must be read before this part is emitted. */
export function rowOf({ cursor }: LivePart): number {
  return parseCursor(cursor)?.row ?? 0;
}

/** The public event of a part, frozen; `after` is the durable event that the stream emitted before it. */
export function eventOfPart(part: LivePart, after: string | null): TroupeEvent {
  const body = bodyOfPart(part, after);
  const isNested = part.kind === "progress" || part.kind === "output" || part.kind === "whole";
  return isNested ? deepFreeze(body) : Object.freeze(body);
}

function bodyOfPart(part: LivePart, after: string | null): TroupeEvent {
  const { agentId, agentName, parentAgentId, rootAgentId, sessionId, turnId, step, attempt, at } = part;
  const place = { agentId, agentName, parentAgentId, rootAgentId, sessionId, turnId, step, at, cursor: null };
  const base = { ...place, after, attempt };
  switch (part.kind) {
    case "text":
      return { type: "text.delta", ...base, offset: part.offset, text: part.text };
    case "reasoning":
      return { type: "reasoning.delta", ...base, offset: part.offset, text: part.text };
    case "call": {
      const { offset, text, index, callId, name } = part;
      return { type: "call.delta", ...base, offset, text, callId, name, index };
    }
    case "whole": {
      const { text, reasoning, calls = [] } = part;
      const own = calls.length === 0 ? {} : { calls: [...calls] };
      return { type: "text.snapshot", ...base, offset: text.length, text, reasoning, ...own };
    }
    case "output":
      return { type: "output.delta", ...base, output: part.output };
    case "progress":
      return { type: "tool.progress", ...base, callId: part.callId, name: part.name, update: part.update };
    case "warning":
      return { type: "warning", ...place, code: part.code, message: part.message };
    case "forecast": {
      const { accountId, limit, used, reserved, max, expected, renewsAt, metAt, message } = part;
      const figures = { limit, used, reserved, max, expected, renewsAt, metAt };
      return { type: "budget.forecast", ...place, after, accountId, ...figures, message };
    }
    default:
      return part satisfies never;
  }
}

/** The cursor before the first event of any tree. */
export const noCursor = cursorText({ row: 0, seq: 0, index: 0 });
