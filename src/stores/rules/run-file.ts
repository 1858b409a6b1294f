import { z } from "zod";
import type { DeepReadonly } from "../../base/index.ts";
import { accountSchema, waiterSchema } from "../../budget/index.ts";
import { InvalidInputError, TroupeError } from "../../errors/index.ts";
import {
  agentRecordSchema,
  agentRequestSchema,
  artifactSchema,
  jsonSchema,
  messageSchema,
  readEntries,
  type StoredDefinition,
  storedDefinitionSchema,
  turnRecordSchema,
} from "../../state/index.ts";
import type { StoredTree } from "./ports.ts";
import { isOfHash } from "./stored-values.ts";
import { checkParts } from "./tree-transfer.ts";

export const RUN_FORMAT = "troupe.run/1";

/** A whole run as one JSON value: `troupe export --json` writes it, `troupe inspect run.json` reads it. */
export const runFileSchema = z.object({
  format: z.literal(RUN_FORMAT),
  exportedAt: z.number().int(),
  namesOnly: z.boolean(),
  tenant: z.string(),
  runId: z.string(),
  /** Parents before their children. */
  agents: z.array(
    z.object({
      record: agentRecordSchema,
      epoch: z.number().int().nonnegative(),
      seq: z.number().int().nonnegative(),
      at: z.number().int(),
      artifacts: z.array(artifactSchema),
      requests: z.array(agentRequestSchema),
    }),
  ),
  accounts: z.array(accountSchema),
  waiters: z.array(waiterSchema),
  /** In cursor order. */
  rows: z.array(
    z.object({
      version: z.number().int(),
      cursor: z.number().int().positive(),
      agentId: z.string(),
      entries: z.array(jsonSchema),
      messages: z.array(messageSchema),
    }),
  ),
  turns: z.array(turnRecordSchema.extend({ hash: z.string().nullable() })),
  /** The definitions under which the agents have worked, if they are stored. */
  definitions: z.array(storedDefinitionSchema),
});
export type RunFile = DeepReadonly<z.infer<typeof runFileSchema>>;

/** A run read from a file. */
export interface ReadRun {
  readonly tree: StoredTree;
  /** Whether the file has only names, ids and numbers. */
  readonly namesOnly: boolean;
}

/** Reads the text of an exported run. Throws `InvalidInputError` unless it is a run of the format `RUN_FORMAT`. */
export function readRunFile(text: string): ReadRun {
  try {
    const parsed = runFileSchema.safeParse(JSON.parse(text));
    if (!parsed.success) {
      const [issue] = parsed.error.issues;
      throw noRun(`${issue?.message} at ${issue?.path.join(".") || "its top"}`);
    }
    const { tenant, runId, namesOnly, agents, accounts, waiters, rows, turns, definitions } = parsed.data;
    const tree = {
      tenant,
      rootAgentId: runId,
      agents: agents.map((agent) => ({ ...agent, ...atRest })),
      accounts,
      lines: Object.fromEntries(accounts.flatMap(({ id, line }) => (line ? [[id, waiters]] : []))),
      rows: rows.map(({ entries, ...row }) => ({
        ...row,
        entries: readEntries(row.version, entries, `row ${row.cursor}`),
      })),
      turns,
      definitions,
      projections: [],
    };
    checkParts(tree);
    return { tree, namesOnly };
  } catch (error) {
    if (error instanceof InvalidInputError) throw error;
    throw noRun(
      error instanceof TroupeError || error instanceof SyntaxError ? error.message : "it cannot be read",
      error,
    );
  }
}

/** The agents of a copy, which no process ever runs. */
const atRest = { isHeld: false, sign: 0, lastBatch: null, inbox: [], timers: [] } as const;

/** Whether the definition is as it was exported: redacting a text in it changes its hash. */
export function isIntactDefinition(definition: StoredDefinition): boolean {
  return isOfHash(definition, definition.hash);
}

function noRun(why: string, cause?: unknown): InvalidInputError {
  return new InvalidInputError(
    `invalid run: ${why}; expected a file of the format ${RUN_FORMAT}, as "troupe export --json" writes it`,
    { cause },
  );
}
