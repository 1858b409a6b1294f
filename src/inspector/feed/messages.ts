import { z } from "zod";
import type { DeepReadonly } from "../../base/index.ts";
import { type Entry, entrySchema, troupeEventSchema } from "../../state/index.ts";

const count = z.number().int().nonnegative();
/** Milliseconds since the epoch. */
const time = z.number().int();

/** The part of an agent's record that never changes. */
export const feedAgentSchema = z.object({
  agentId: z.string(),
  /** Name of its definition. */
  name: z.string(),
  /** Hash of its definition. */
  definition: z.string(),
  parentAgentId: z.string().nullable(),
  /** The parent's turn, step and call that spawned it; `null` for a root, or if code spawned it. */
  parentTurnId: z.string().nullable(),
  parentStep: z.number().int().nullable(),
  parentCallId: z.string().nullable(),
  isBackground: z.boolean(),
  depth: count,
  /** The account of its lifetime, if it has one, and the account above its own. */
  accountId: z.string().nullable(),
  parentAccountId: z.string().nullable(),
  sessionId: z.string().nullable(),
  createdAt: time,
});
export type FeedAgent = DeepReadonly<z.infer<typeof feedAgentSchema>>;

/**
 * An entry of the journal without its epoch and with its contents emptied: texts are "", JSON values null, lists of tools
 * empty. Under `namesOnly` so are error messages, prompts of requests, reasons and persons. The row has the contents.
 */
export type FeedEntry = Entry extends infer One ? (One extends Entry ? Omit<One, "epoch"> : never) : never;
export const feedEntrySchema: z.ZodType<FeedEntry> = z.preprocess(
  (entry) => (typeof entry === "object" && entry !== null ? { ...entry, epoch: 1 } : entry),
  entrySchema.transform(({ epoch: _epoch, ...entry }): FeedEntry => entry as FeedEntry),
);

/** The entries of one commit. */
export interface FeedRow {
  /** Position in the journal of the run. */
  readonly cursor: number;
  /** The agent that the row is about. */
  readonly agentId: string;
  /** What was committed together, in order. */
  readonly entries: readonly FeedEntry[];
}
const feedRowSchema = z.object({ cursor: count, agentId: z.string(), entries: z.array(feedEntrySchema) });

/**
 * `alive`: it runs or has given a heartbeat; `silent`: it has given none for too long; `dead`: it has ended. What a process
 * can see of one on another machine is only its heartbeat.
 */
export const processStateSchema = z.enum(["alive", "silent", "dead"]);
export type ProcessState = z.infer<typeof processStateSchema>;

/** A process that runs agents of a run. */
export const feedProcessSchema = z.object({
  processId: z.string(),
  pid: z.number().int(),
  /** Whether it runs on the machine of the feed, where processes can be seen. */
  isHere: z.boolean(),
  /** Name of its machine; `null` if it is not known. */
  host: z.string().nullable(),
  /** When it was started; `null` if it is not known. */
  startedAt: time.nullable(),
  state: processStateSchema,
  /** Its last sign of life. */
  seenAt: time,
});
export type FeedProcess = DeepReadonly<z.infer<typeof feedProcessSchema>>;

/** The process that has the lease of an agent with an open turn; `null` if no process has had it for two seconds. */
export const feedOwnerSchema = z.object({ agentId: z.string(), processId: z.string().nullable() });
export type FeedOwner = DeepReadonly<z.infer<typeof feedOwnerSchema>>;

const live = ["text.delta", "text.snapshot", "reasoning.delta", "tool.progress"] as const;
const isLiveType = (type: string): boolean => (live as readonly string[]).includes(type);
export type LiveEvent = Extract<z.infer<typeof troupeEventSchema>, { type: (typeof live)[number] }>;

export const clientMessageSchema = z.discriminatedUnion("type", [
  /** Begins to send a run's rows after the cursor; with it come `credit` batches. A second one of a run replaces it. */
  z.strictObject({ type: z.literal("watch"), run: z.string().max(512), after: count, credit: count.max(1_000) }),
  /** Grants more batches to each run that is watched. */
  z.strictObject({ type: z.literal("credit"), batches: z.number().int().positive().max(1_000) }),
  z.strictObject({ type: z.literal("end"), run: z.string().max(512) }),
]);
export type ClientMessage = DeepReadonly<z.infer<typeof clientMessageSchema>>;

export const feedErrorCodeSchema = z.enum(["invalid", "not_found", "too_many", "unavailable"]);

/** What the server sends. Named here, because the declarations of the schema's own type take 120 KB. */
export type FeedMessage =
  | { readonly type: "agents"; readonly run: string; readonly agents: readonly FeedAgent[] }
  | {
      readonly type: "rows";
      readonly run: string;
      readonly rows: readonly FeedRow[];
      readonly head: number;
      readonly isCaughtUp: boolean;
    }
  | { readonly type: "live"; readonly run: string; readonly event: LiveEvent }
  | {
      readonly type: "status";
      readonly run: string;
      readonly now: number;
      readonly isReachable: boolean;
      readonly reachedAt: number;
      readonly processes: readonly FeedProcess[];
      readonly owners?: readonly FeedOwner[] | undefined;
      readonly openRequests: readonly string[];
    }
  | { readonly type: "gone"; readonly run: string; readonly why: string }
  | {
      readonly type: "error";
      readonly code: z.infer<typeof feedErrorCodeSchema>;
      readonly message: string;
      readonly run?: string | undefined;
    };
/** `run` is the id of the run's root agent. */
export const feedMessageSchema: z.ZodType<FeedMessage> = z.discriminatedUnion("type", [
  /** Agents whose first row comes next. Costs no credit. */
  z.object({ type: z.literal("agents"), run: z.string(), agents: z.array(feedAgentSchema) }),
  /** One batch, which takes one credit. It is empty if there are no new rows and `isCaughtUp` is true. */
  z.object({
    type: z.literal("rows"),
    run: z.string(),
    rows: z.array(feedRowSchema),
    /** The cursor to go on behind: that of the last row, or the one that was asked for. */
    head: count,
    /** There were no further rows when it was read. */
    isCaughtUp: z.boolean(),
  }),
  /** A piece of what is being written, which is stored nowhere. */
  z.object({
    type: z.literal("live"),
    run: z.string(),
    event: troupeEventSchema.refine(({ type }) => isLiveType(type)).transform((event) => event as LiveEvent),
  }),
  /** The state of the run's source, every 1.5 seconds and after a change. Costs no credit. */
  z.object({
    type: z.literal("status"),
    run: z.string(),
    /** The clock of the feed's process. */
    now: time,
    /** Whether the stores answer, and when they last did. */
    isReachable: z.boolean(),
    reachedAt: time,
    /** Those that have the lease of an agent with an open turn. */
    processes: z.array(feedProcessSchema),
    /** Of agents with an open turn, at most 500. Absent if they are the same as in the status before. */
    owners: z.array(feedOwnerSchema).optional(),
    /** Ids of all requests that are open in the stores. */
    openRequests: z.array(z.string()),
  }),
  /** Nothing more comes of this run. */
  z.object({ type: z.literal("gone"), run: z.string(), why: z.string() }),
  z.object({ type: z.literal("error"), code: feedErrorCodeSchema, message: z.string(), run: z.string().optional() }),
]);
