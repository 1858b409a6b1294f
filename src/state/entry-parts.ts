import { z } from "zod";
import { contentSchema } from "./message.ts";
import { stopReasonSchema } from "./stop.ts";

/** What a tool does to the world, and so whether it may be repeated (design, Tool effects). Journalled with each turn. */
export const grantedToolSchema = z.object({
  name: z.string(),
  kind: z.enum(["function", "subagent", "internal"]),
  effect: z.enum(["none", "keyed", "once"]),
});
export type GrantedTool = z.infer<typeof grantedToolSchema>;

export const definitionRefSchema = z.object({ name: z.string(), hash: z.string() });
export type DefinitionRef = z.infer<typeof definitionRefSchema>;

/**
 * What one hook changed, and only that (design, The journal). Added messages enter history with origin `hook:<plugin>`;
 * edits and removals hold for the one model call that follows.
 */
export const hookPatchSchema = z.object({
  addedMessageIds: z.array(z.string()),
  edited: z.array(z.object({ messageId: z.string(), content: contentSchema })),
  removedMessageIds: z.array(z.string()),
  stop: z.object({ reason: stopReasonSchema, message: z.string() }).nullable(),
  continueRequested: z.boolean(),
});
export type HookPatch = z.infer<typeof hookPatchSchema>;

export const hookNameSchema = z.enum(["beforeLlm", "afterTools"]);
export type HookName = z.infer<typeof hookNameSchema>;

/** Why an intent was not granted. */
export const refusalReasonSchema = z.enum(["budget", "mustWait", "unpriced", "paused", "aborted"]);
export type RefusalReason = z.infer<typeof refusalReasonSchema>;

export const gateVerdictSchema = z.enum(["allowed", "denied", "invalid", "not_found", "failed"]);
export type GateVerdict = z.infer<typeof gateVerdictSchema>;

export const turnOutcomeSchema = z.enum(["completed", "stopped", "failed"]);
export type TurnOutcome = z.infer<typeof turnOutcomeSchema>;
