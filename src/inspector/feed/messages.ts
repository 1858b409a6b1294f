import { z } from "zod";
import type { DeepReadonly } from "../../base/index.ts";
import { type Entry, entrySchema, troupeEventSchema } from "../../state/index.ts";

const count = z.number().int().nonnegative();
/** Milliseconds since the epoch. */
const time = z.number().int();

/** The run that a fork continues, and where it left it. */
export const forkOriginSchema = z.object({
  runId: z.string(),
  turn: z.number().int().positive(),
  step: z.number().int().positive().nullable(),
});
export type ForkOrigin = DeepReadonly<z.infer<typeof forkOriginSchema>>;

/** The immutable fields of an agent's record. */
export const feedAgentSchema = z.object({
  agentId: z.string(),
  /** Name of the agent's definition. */
  name: z.string(),
  /** Hash of the agent's definition. */
  definition: z.string(),
  parentAgentId: z.string().nullable(),
  /** The parent's turn, step and call that spawned it; `null` for a root, or if code spawned it. */
  parentTurnId: z.string().nullable(),
  parentStep: z.number().int().nullable(),
  parentCallId: z.string().nullable(),
  isBackground: z.boolean(),
  depth: count,
  /** The agent's lifetime account, if it has one, and that account's parent. */
  accountId: z.string().nullable(),
  parentAccountId: z.string().nullable(),
  sessionId: z.string().nullable(),
  createdAt: time,
  /** Where the tree left its origin, if it is a fork; `step` is `null` for a fork after everything of a turn. */
  origin: forkOriginSchema.optional(),
  /** Its tools do not run: stubs give their results. */
  isStubbed: z.literal(true).optional(),
});
export type FeedAgent = DeepReadonly<z.infer<typeof feedAgentSchema>>;

/**
 * A journal entry without its epoch and with its contents emptied: texts are "", JSON values null, lists of tools
 * empty. With `namesOnly`, error messages, prompts of requests, reasons and persons are emptied too. The row view has
 * the contents.
 */
export type FeedEntry = Entry extends infer One ? (One extends Entry ? Omit<One, "epoch"> : never) : never;
export const feedEntrySchema: z.ZodType<FeedEntry> = z.preprocess(
  (entry) => (typeof entry === "object" && entry !== null ? { ...entry, epoch: 1 } : entry),
  entrySchema.transform(({ epoch: _epoch, ...entry }): FeedEntry => entry as FeedEntry),
);

/** The entries of one commit. */
export interface FeedRow {
  /** Position in the run's journal. */
  readonly cursor: number;
  /** Id of the agent whose entries the row has. */
  readonly agentId: string;
  /** The entries of the commit, in order. */
  readonly entries: readonly FeedEntry[];
}
const feedRowSchema = z.object({ cursor: count, agentId: z.string(), entries: z.array(feedEntrySchema) });

/**
 * `alive`: the process runs or has sent a heartbeat; `silent`: its heartbeat is overdue; `dead`: it has ended. For a
 * process on another machine, only the heartbeat is known.
 */
export const processStateSchema = z.enum(["alive", "silent", "dead"]);
export type ProcessState = z.infer<typeof processStateSchema>;

/** A process that runs agents of a run. */
export const feedProcessSchema = z.object({
  processId: z.string(),
  pid: z.number().int(),
  /** Whether it runs on the feed's machine, where the feed can check that the process exists. */
  isHere: z.boolean(),
  /** Host name; `null` if it is not known. */
  host: z.string().nullable(),
  /** When the process was started; `null` if that is not known. */
  startedAt: time.nullable(),
  state: processStateSchema,
  /** When the process was last known to be alive. */
  seenAt: time,
});
export type FeedProcess = DeepReadonly<z.infer<typeof feedProcessSchema>>;

/** The process that holds the lease of an agent with an open turn; `null` if no process has held it for two seconds. */
export const feedOwnerSchema = z.object({ agentId: z.string(), processId: z.string().nullable() });
export type FeedOwner = DeepReadonly<z.infer<typeof feedOwnerSchema>>;

const live = ["text.delta", "text.snapshot", "reasoning.delta", "call.delta", "tool.progress"] as const;
const isLiveType = (type: string): boolean => (live as readonly string[]).includes(type);
export type LiveEvent = Extract<z.infer<typeof troupeEventSchema>, { type: (typeof live)[number] }>;

export const clientMessageSchema = z.discriminatedUnion("type", [
  /**
   * Starts sending a run's rows after the cursor, `credit` batches at first. A second `watch` of a run replaces the first.
   */
  z.strictObject({ type: z.literal("watch"), run: z.string().max(512), after: count, credit: count.max(1_000) }),
  /** Grants more batches to each run that is watched. */
  z.strictObject({ type: z.literal("credit"), batches: z.number().int().positive().max(1_000) }),
  z.strictObject({ type: z.literal("end"), run: z.string().max(512) }),
]);
export type ClientMessage = DeepReadonly<z.infer<typeof clientMessageSchema>>;

export const feedErrorCodeSchema = z.enum(["invalid", "not_found", "too_many", "unavailable"]);

/** A message from the server. Declared by hand, because the declarations of the schema's inferred type take 120 KB. */
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
  /** Agents whose first row is in the next batch. Uses no credit. */
  z.object({ type: z.literal("agents"), run: z.string(), agents: z.array(feedAgentSchema) }),
  /** One batch; uses one credit. Without new rows it is empty and `isCaughtUp` is true. */
  z.object({
    type: z.literal("rows"),
    run: z.string(),
    rows: z.array(feedRowSchema),
    /** The cursor to continue after: the last row's, or the requested one if there are no rows. */
    head: count,
    /** Whether there were no further rows when the batch was read. */
    isCaughtUp: z.boolean(),
  }),
  /** A piece of live text or tool progress, which is not stored. */
  z.object({
    type: z.literal("live"),
    run: z.string(),
    event: troupeEventSchema.refine(({ type }) => isLiveType(type)).transform((event) => event as LiveEvent),
  }),
  /** The state of the run's source, every 1.5 seconds and after a change. Uses no credit. */
  z.object({
    type: z.literal("status"),
    run: z.string(),
    /** The time of the feed's clock. */
    now: time,
    /** Whether the stores answer, and when they last did. */
    isReachable: z.boolean(),
    reachedAt: time,
    /** The processes that hold the lease of an agent with an open turn. */
    processes: z.array(feedProcessSchema),
    /** Owners of agents with an open turn, at most 500. Absent if unchanged since the previous status. */
    owners: z.array(feedOwnerSchema).optional(),
    /** Ids of the run's open requests. */
    openRequests: z.array(z.string()),
  }),
  /** The last message of this run. */
  z.object({ type: z.literal("gone"), run: z.string(), why: z.string() }),
  z.object({ type: z.literal("error"), code: feedErrorCodeSchema, message: z.string(), run: z.string().optional() }),
]);
