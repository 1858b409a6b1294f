import { z } from "zod";
import { type Account, accountSchema } from "../../budget/index.ts";
import { CorruptRecordError } from "../../errors/index.ts";
import { type AgentRecord, type AgentRequest, agentRecordSchema, agentRequestSchema } from "../../state/index.ts";
import { fields } from "./redis-keys.ts";
import { parsed } from "../rules/stored-json.ts";
import { type StoredOutcome, storedOutcomeSchema } from "../rules/stored-outcome.ts";
import { freshHead, type Head, type ProcessRow } from "../rules/tables.ts";

/** A row of a tree as it was seen last. */
export interface SeenRow {
  /** Empty where the row is absent. */
  readonly version: string;
  readonly text: string | undefined;
  /** What the text says, once somebody asked. */
  value?: unknown;
}

export const absentRow: SeenRow = Object.freeze({ version: "", text: undefined });

/** A kind of row: its name in the tree's hash, and how its text is read. */
export interface RowKind<T> {
  readonly field: string;
  readonly what: string;
  parse(text: string, where: string): T;
}

/** As the scripts see it. What is no row at all is found out by whoever reads its text. */
export function seenRow(stored: string): SeenRow {
  const [start = "", version = ""] = /^(\d+)\|/.exec(stored) ?? [];
  return { version, text: stored.slice(start.length) };
}

export function valueOf<T>(row: SeenRow, kind: RowKind<T>, key: string): T | undefined {
  if (row.text === undefined) return undefined;
  row.value ??= kind.parse(row.text, `${kind.what} (${kind.field} of ${key})`);
  return row.value as T;
}

const headRowSchema = z.object({
  epoch: z.int(),
  holder: z.string().nullable(),
  seq: z.int(),
  at: z.number(),
  sign: z.number(),
  batchId: z.string().nullable(),
  openRequests: z.int(),
  /** Absent: `none`. */
  work: z.enum(["open", "parked"]).optional(),
  /** Ids of the open requests. */
  open: z.array(z.string()),
  /** Absent for what most batches are answered. */
  outcome: storedOutcomeSchema.optional(),
});
/** The head with what changes together with it. */
export interface HeadRow {
  readonly head: Head;
  readonly open: readonly string[];
  readonly outcome: StoredOutcome | undefined;
}

export const freshHeadRow: HeadRow = { head: freshHead, open: [], outcome: undefined };

export function headText({ head: { work, ...head }, open, outcome }: HeadRow): string {
  return JSON.stringify({ ...head, work: work === "none" ? undefined : work, open, outcome });
}

const processRowSchema = z.object({
  processId: z.string(),
  pid: z.int(),
  bootId: z.string(),
  startTime: z.string().nullable(),
  heartbeatAt: z.number(),
  clockOffset: z.number(),
});

export const rowKinds = {
  record: (tenant: string, agentId: string): RowKind<AgentRecord> => ({
    field: fields.record(agentId),
    what: `the record of agent ${agentId}`,
    parse: (text, where) => {
      const record = parsed(agentRecordSchema, text, where);
      if (record.agentId === agentId && record.tenant === tenant) return record;
      throw new CorruptRecordError(`${where} is that of agent ${record.agentId}; it is left as it is`);
    },
  }),
  head: (agentId: string): RowKind<HeadRow> => ({
    field: fields.head(agentId),
    what: `the head of agent ${agentId}`,
    parse: (text, where) => {
      const { open, outcome, work = "none", ...head } = parsed(headRowSchema, text, where);
      return { head: { ...head, work }, open, outcome };
    },
  }),
  account: (accountId: string): RowKind<Account> => ({
    field: fields.account(accountId),
    what: `account ${accountId}`,
    parse: (text, where) => {
      const account = parsed(accountSchema, text, where);
      if (account.id === accountId) return account;
      throw new CorruptRecordError(`${where} holds account ${account.id}; it is left as it is`);
    },
  }),
  request: (agentId: string, requestId: string): RowKind<AgentRequest> => ({
    field: fields.request(agentId, requestId),
    what: `request ${requestId}`,
    parse: (text, where) => {
      const request = parsed(agentRequestSchema, text, where);
      if (request.requestId === requestId && request.agentId === agentId) return request;
      throw new CorruptRecordError(`${where} holds request ${request.requestId}; it is left as it is`);
    },
  }),
  process: (processId: string): RowKind<ProcessRow> => ({
    field: fields.process(processId),
    what: `process ${processId}`,
    parse: (text, where) => parsed(processRowSchema, text, where),
  }),
  timersFrom: {
    field: fields.timersFrom,
    what: "the time of the first timer",
    parse: (text, where) => parsed(z.number(), text, where),
  } satisfies RowKind<number>,
} as const;
