import { z } from "zod";

/** What every entry has: given by the writer. */
export const envelope = {
  seq: z.number().int().positive(),
  /** Milliseconds since the epoch, never going back within a journal; for people. */
  at: z.number().int(),
  epoch: z.number().int().positive(),
};
export const ofTurn = { ...envelope, turnId: z.string() };
export const ofStep = { ...ofTurn, step: z.number().int().positive() };
export const ofCall = { ...ofStep, callId: z.string() };
