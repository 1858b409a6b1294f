import type { z } from "zod";
import { amountsSchema, limitNameSchema, limitsSchema, modelUseSchema } from "../../budget/index.ts";
import {
  agentStateJsonSchema,
  contentSchema,
  jsonSchema,
  lifecycleSchema,
  messageSchema,
  stopReasonSchema,
  storedErrorSchema,
  traceEntrySchema,
  troupeEventSchema,
  usageSchema,
} from "../../state/index.ts";

/** Schemas of the core that the document gives a name; those of this API carry theirs themselves. */
export const namedSchemas: Readonly<Record<string, z.ZodType>> = {
  AgentState: agentStateJsonSchema,
  Amounts: amountsSchema,
  Content: contentSchema,
  ErrorInfo: storedErrorSchema,
  Event: troupeEventSchema,
  Json: jsonSchema,
  Lifecycle: lifecycleSchema,
  LimitName: limitNameSchema,
  Limits: limitsSchema,
  Message: messageSchema,
  ModelUse: modelUseSchema,
  StopReason: stopReasonSchema,
  TraceEntry: traceEntrySchema,
  Usage: usageSchema,
  ...variants(messageSchema.options, "role", "Message"),
  ...variants(troupeEventSchema.options, "type", "Event"),
  ...variants(traceEntrySchema.options, "type", "Trace"),
};

/** `UserMessage` for the option whose `role` is `user`, `TurnStartedEvent` for `turn.started`. */
function variants<Key extends string>(
  options: readonly z.ZodObject<Record<Key, z.ZodLiteral<string>>>[],
  key: Key,
  ending: string,
): Readonly<Record<string, z.ZodType>> {
  return Object.fromEntries(
    options.map((option) => {
      const words = option.shape[key].value.split(/[._]/);
      return [words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("") + ending, option];
    }),
  );
}
