import { z } from "zod";
import { CorruptRecordError } from "../../errors/index.ts";
import { parsed } from "./stored-values.ts";
import type { ProcessRow } from "./tables.ts";

const processRowSchema = z.object({
  processId: z.string(),
  pid: z.int(),
  bootId: z.string(),
  startTime: z.string().nullable(),
  heartbeatAt: z.number(),
  clockOffset: z.number(),
  host: z.string().optional(),
  startedAt: z.number().optional(),
});

const unreadable = new Set<string>();

/**
 * A process whose row is corrupt counts as one that was silent for long: it is registered again at its next heartbeat, and epochs prevent
 * that it writes until then. It must not prevent other processes from starting.
 */
export function processIn(text: string, where: string, processId: string): ProcessRow {
  try {
    return parsed(processRowSchema, text, where);
  } catch (error) {
    if (!(error instanceof CorruptRecordError)) throw error;
    if (!unreadable.has(processId)) process.emitWarning(error.message, { code: "TROUPE_CORRUPT_RECORD" });
    unreadable.add(processId);
    return { processId, pid: 0, bootId: "", startTime: null, heartbeatAt: 0, clockOffset: 0 };
  }
}
