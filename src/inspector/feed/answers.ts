import { z } from "zod";
import type { DeepReadonly } from "../../base/index.ts";
import { accountSchema, modelUseSchema, waiterSchema } from "../../budget/index.ts";
import {
  agentRequestSchema,
  artifactSchema,
  callOutcomeSchema,
  definitionRefSchema,
  effectClassSchema,
  finishReasonSchema,
  gateVerdictSchema,
  jsonSchema,
  lifecycleSchema,
  messageSchema,
  modelToolSchema,
  providerOptionsSchema,
  reasoningEffortSchema,
  requestVerdictSchema,
  responseFormatSchema,
  stopReasonSchema,
  storedErrorSchema,
  toolChoiceSchema,
  toolKindSchema,
  turnStatusSchema,
  usageSchema,
} from "../../state/index.ts";
import {
  type FeedAgent,
  feedAgentSchema,
  feedProcessSchema,
  type FeedRow,
  forkOriginSchema,
  processStateSchema,
} from "./messages.ts";

/*
 * The published format of the feed: the WebSocket messages (messages.ts) and, in this file, the REST answers
 * (docs/inspector.md). New fields may be added under the same version name; any other change needs a new version.
 */
export const FEED_VERSION = "troupe.feed/1";

const count = z.number().int().nonnegative();
const cost = count.nullable();
/** Milliseconds since the epoch. */
const time = z.number().int();

export const scopeSchema = z.enum(["watch", "act"]);
export type Scope = z.infer<typeof scopeSchema>;

export const feedInfoSchema = z.object({
  version: z.literal(FEED_VERSION),
  /** The scope of the token that was sent with the request. */
  scope: scopeSchema,
  namesOnly: z.boolean(),
  /**
   * `process`: the process that runs the agents; `store`: a store that other processes may write to; `file`: an exported
   * run.
   */
  source: z.enum(["process", "store", "file"]),
  /** The kind of the stores: `memory`, `sqlite`, `redis`. */
  stores: z.string(),
  tenant: z.string(),
  /** `written`: text is sent while the model writes it; `committed`: text is sent once it is committed. */
  text: z.enum(["written", "committed"]),
  /** Names of the definitions that the page can talk to; empty if this server cannot start turns. */
  definitions: z.array(z.string()),
  /**
   * What a token of scope `act` allows: nothing, decide and pause, or also talk. Becomes `none` when the runtime is shut
   * down.
   */
  acts: z.enum(["none", "decide", "talk"]),
  hasQueues: z.boolean(),
  /** Whether there is a report of evals. Absent if there is none. */
  hasEvals: z.literal(true).optional(),
  /** The server's clock. */
  now: time,
  /** The run that the page opens first. Absent if it opens the list of runs. */
  run: z.string().optional(),
  /** The read-only token, for a link to share. Present only if the request's token may act. */
  watchToken: z.string().optional(),
  /** Path of the same server's API documentation. Absent if the server has none. */
  apiDocs: z.string().optional(),
});
export type FeedInfo = DeepReadonly<z.infer<typeof feedInfoSchema>>;

const amount = z.number().nonnegative();
const share = z.number().min(0).max(1);

/** The figures of several runs of evals: means of a run, dollars, milliseconds. */
const evalFiguresSchema = z.object({
  runs: count,
  passed: count,
  passRate: share,
  /** Of the pass rate, at 95 %. */
  interval: z.object({ low: share, high: share }),
  /** `null` if a price is unknown. */
  cost: amount.nullable(),
  tokens: amount,
  durationMs: amount,
});

const evalChangeSchema = z.object({ before: amount, now: amount, isSignificant: z.boolean() });
const evalChangesSchema = z.object({
  passRate: evalChangeSchema,
  /** `null` if a price is unknown. */
  cost: evalChangeSchema.nullable(),
  tokens: evalChangeSchema,
  durationMs: evalChangeSchema,
});

const evalCaseSchema = evalFiguresSchema.extend({
  /** File and name: the case in addresses. */
  key: z.string(),
  file: z.string(),
  name: z.string(),
  isFlaky: z.boolean(),
  /** Compared with the earlier report; `null` if there is none, or if it does not have the case. */
  changes: evalChangesSchema.nullable(),
});

/** A report of `troupe eval --json`, and what has changed since an earlier one. */
export const evalsSchema = z.object({
  createdAt: time,
  /** The lowest share of runs that must pass. */
  minPass: share,
  isGoodEnough: z.boolean(),
  all: evalFiguresSchema.extend({ changes: evalChangesSchema.nullable() }),
  cases: z.array(evalCaseSchema),
  /** Keys of the cases that did not run. */
  skipped: z.array(z.string()),
  /** Errors outside of cases. Empty texts if texts are hidden. */
  errors: z.array(z.string()),
  /** The earlier report, and the keys of cases that only one of the two has; `null` if there is none. */
  compared: z.object({ createdAt: time, added: z.array(z.string()), removed: z.array(z.string()) }).nullable(),
});
export type Evals = DeepReadonly<z.infer<typeof evalsSchema>>;

/** One run of a case. */
export const evalRunSchema = z.object({
  /** The number of the repetition, from 1. */
  run: count,
  passed: z.boolean(),
  /** Why it failed; `null` if it passed, empty if texts are hidden. */
  failure: z.string().nullable(),
  durationMs: amount,
  /** Dollars; `null` if a price is unknown. */
  cost: amount.nullable(),
  tokens: count,
  /** Of the case, without judges and simulated users. */
  steps: count,
  toolCalls: count,
  /** Its root agents: of the case, of judges and of simulated users. `isStored`: the feed has their run. */
  agents: z.array(
    z.object({
      kind: z.enum(["case", "judge", "user"]),
      agentId: z.string(),
      agentName: z.string(),
      isStored: z.boolean(),
    }),
  ),
});
export type EvalRun = DeepReadonly<z.infer<typeof evalRunSchema>>;

export const runRowSchema = z.object({
  /** The id of the root agent. */
  runId: z.string(),
  /** Name of the root's definition. */
  name: z.string(),
  status: lifecycleSchema,
  /** Status of the root's newest turn; `null` if the root has no turn. */
  turn: turnStatusSchema.nullable(),
  stopReason: stopReasonSchema.nullable(),
  turns: count,
  createdAt: time,
  lastActivity: time,
  /** The first words of the run's first input; empty if the run has no input or inputs are hidden. */
  task: z.string(),
  /** Number of agents in the whole tree. */
  agents: count,
  /** Agents of the tree that have failed. */
  failedAgents: count,
  tokens: count,
  /** Micro-dollars; `null` if no call had a price. */
  costMicros: cost,
  /** Model calls that may have cost something, and how many of them have no price; the cost leaves the latter out. */
  calls: count,
  unpricedCalls: count,
  /** Use of each model by the own calls of each definition's agents. */
  spending: z.array(z.object({ name: z.string(), model: z.string(), use: modelUseSchema })),
  /** The accounts that limit the root's newest turn: the lifetime account and the turn's account. */
  accounts: z.array(accountSchema),
  openRequests: count,
  /** Whether a process, alive or not, holds the root's lease. */
  isHeld: z.boolean(),
  /** State of the process that runs the root or one of its busy subagents; `null` if no process holds a lease of them. */
  owner: processStateSchema.nullable(),
  sessionId: z.string().nullable(),
  /** Absent unless the run is a fork. `isStored`: whether its origin is still stored. */
  origin: forkOriginSchema.extend({ isStored: z.boolean() }).optional(),
  /** The tools of its agents do not run: stubs give their results. */
  isStubbed: z.literal(true).optional(),
});
export type RunRow = DeepReadonly<z.infer<typeof runRowSchema>>;
export const runPageSchema = z.object({ items: z.array(runRowSchema), next: z.string().nullable() });
export type RunPage = DeepReadonly<z.infer<typeof runPageSchema>>;

export const storedAccountsSchema = z.object({
  cursor: count,
  accounts: z.array(accountSchema),
  /** Calls that wait for budget, in queue order. */
  waiters: z.array(waiterSchema),
  /** The accounts of the run's owner and of the tenant, above its root. Absent if there are none. */
  above: z.array(accountSchema).optional(),
});
export type StoredAccounts = DeepReadonly<z.infer<typeof storedAccountsSchema>>;

export const runHeadSchema = storedAccountsSchema.extend({
  run: runRowSchema,
  agents: z.array(feedAgentSchema),
  requests: z.array(agentRequestSchema),
});
export type RunHead = DeepReadonly<z.infer<typeof runHeadSchema>>;

/** A state as XState writes it: a name, or an object from a parent state to its child. */
const stateValue = jsonSchema;
export const transitionSchema = z.object({
  cursor: count,
  seq: count,
  at: time,
  machine: z.enum(["agent", "turn", "toolCall"]),
  /** The id of the agent, turn or call. */
  id: z.string(),
  from: stateValue,
  to: stateValue,
  /** Type of the entry that caused the transition. */
  entry: z.string(),
  /** Name of the guard that chose the transition; `null` if it has no guard. */
  guard: z.string().nullable(),
});
export type Transition = DeepReadonly<z.infer<typeof transitionSchema>>;

export const agentMachinesSchema = z.object({
  agentId: z.string(),
  /** Cursor of the last folded row. */
  cursor: count,
  agent: z.object({ value: stateValue }),
  turn: z.object({ turnId: z.string(), value: stateValue }).nullable(),
  calls: z.array(z.object({ callId: z.string(), name: z.string(), value: stateValue })),
  last: transitionSchema.nullable(),
});
export type AgentMachines = DeepReadonly<z.infer<typeof agentMachinesSchema>>;
export const transitionPageSchema = z.object({
  items: z.array(transitionSchema),
  next: z.string().nullable(),
  /** How many transitions the agent has made. */
  total: count,
});
export type TransitionPage = DeepReadonly<z.infer<typeof transitionPageSchema>>;

/**
 * A message with the position of the entry that added it to the conversation. The position is `null` if no entry has added
 * it yet, or if the conversation was cleared since.
 */
export const feedMessageItemSchema = z.object({
  message: messageSchema,
  cursor: count.nullable(),
  seq: count.nullable(),
  turnId: z.string().nullable(),
  step: count.nullable(),
  /** Whether the stored text is longer than the text sent. */
  isCut: z.boolean(),
});
export type FeedMessageItem = DeepReadonly<z.infer<typeof feedMessageItemSchema>>;
export const messagePageSchema = z.object({ items: z.array(feedMessageItemSchema), next: z.string().nullable() });
export type MessagePage = DeepReadonly<z.infer<typeof messagePageSchema>>;

/** One attempt of a model call. */
export const promptRowSchema = z.object({
  /** Number of the entry `model.requested` in its agent's journal; identifies the prompt. */
  seq: count,
  cursor: count,
  at: time,
  turnId: z.string(),
  step: count,
  attempt: z.number().int().positive(),
  model: z.string(),
  promptHash: z.string(),
  /** Whether this was the last call that the limits allowed, so that it could not call tools. */
  isLast: z.boolean(),
  outcome: z.enum(["open", "answered", "failed"]),
  usage: usageSchema.nullable(),
  costMicros: cost,
  durationMs: count.nullable(),
  finishReason: finishReasonSchema.nullable(),
});
export type PromptRow = DeepReadonly<z.infer<typeof promptRowSchema>>;

export const promptSchema = promptRowSchema.extend({
  /** Whether the rebuilt prompt has the same hash as the prompt that was sent. */
  isExact: z.boolean(),
  /** Why the rebuilt prompt may differ from the prompt that was sent; `null` if it is exact. */
  why: z.string().nullable(),
  messages: z.array(messageSchema),
  /** `null` if the tools are not known. */
  tools: z.array(modelToolSchema).nullable(),
  parameters: z.object({
    toolChoice: toolChoiceSchema.optional(),
    maxOutputTokens: z.number().int().optional(),
    temperature: z.number().optional(),
    stopSequences: z.array(z.string()).optional(),
    reasoningEffort: reasoningEffortSchema.optional(),
    providerOptions: providerOptionsSchema.optional(),
    responseFormat: responseFormatSchema.optional(),
  }),
  answer: messageSchema.nullable(),
  error: storedErrorSchema.nullable(),
});
export type Prompt = DeepReadonly<z.infer<typeof promptSchema>>;

export const artifactViewSchema = artifactSchema.extend({
  /** Whether the stored content is longer than the content sent. */
  isCut: z.boolean(),
});
export type ArtifactView = DeepReadonly<z.infer<typeof artifactViewSchema>>;

export const callDetailSchema = z.object({
  callId: z.string(),
  agentId: z.string(),
  turnId: z.string(),
  step: count,
  name: z.string(),
  kind: toolKindSchema.nullable(),
  effect: effectClassSchema.nullable(),
  /** The arguments as the model wrote them; `null` if they are not known. */
  asked: z.string().nullable(),
  /** The text of the model's answer that asks for the call; `null` if it is unknown or the call has no request. */
  said: z.string().nullable(),
  /** JSON Schema of the arguments; `null` unless a request of the call is open and the schema is stored. */
  parameters: jsonSchema,
  gate: z
    .object({
      at: time,
      verdict: gateVerdictSchema,
      /** The checked arguments. */
      arguments: jsonSchema,
      argumentsHash: z.string(),
      needsApproval: z.boolean(),
      message: z.string().nullable(),
    })
    .nullable(),
  attempts: z.array(
    z.object({
      attempt: z.number().int().positive(),
      startedAt: time,
      idempotencyKey: z.string(),
      queue: z.string().nullable(),
      error: storedErrorSchema.nullable(),
      retryAt: time.nullable(),
    }),
  ),
  /** The process that runs the call or ran it last, for a queued call of an open turn. */
  worker: z.string().nullable(),
  end: z
    .object({
      at: time,
      outcome: callOutcomeSchema,
      durationMs: count,
      error: storedErrorSchema.nullable(),
      /** The result as sent to the model. */
      message: messageSchema.nullable(),
      artifactId: z.string().nullable(),
      /** The result as data; absent if the tool gave none, and where only names are shown. */
      structured: jsonSchema.optional(),
    })
    .nullable(),
  requests: z.array(agentRequestSchema),
  /** Ids of the agents that the call spawned. */
  childIds: z.array(z.string()),
});
export type CallDetail = DeepReadonly<z.infer<typeof callDetailSchema>>;

/**
 * A run with everything that a page shows of it, as stored in an exported page. Contents that would make the file too
 * large are left out, and the page reports this.
 */
export interface PageData {
  /** Name and version of the format. */
  readonly format: "troupe.page/1";
  /** When it was exported, in milliseconds since the epoch. */
  readonly exportedAt: number;
  /** Whether contents were left out. */
  readonly namesOnly: boolean;
  /** The run's row in a list of runs. */
  readonly run: RunRow;
  /** All agents of the run. */
  readonly agents: readonly FeedAgent[];
  /** The rows of its journal, in order. */
  readonly rows: readonly FeedRow[];
  /** Its budget accounts. */
  readonly accounts: RunHead["accounts"];
  /** Its requests for decisions. */
  readonly requests: RunHead["requests"];
  /** Transitions of the machines, by agent. */
  readonly transitions?: Readonly<Record<string, readonly Transition[]>> | undefined;
  /** Conversations, by agent. */
  readonly messages?: Readonly<Record<string, readonly FeedMessageItem[]>> | undefined;
  /** Prompts of model calls, by agent. */
  readonly prompts?: Readonly<Record<string, readonly Prompt[]>> | undefined;
  /** Details of tool calls, by call. */
  readonly calls?: Readonly<Record<string, CallDetail>> | undefined;
}

/** The contents of a page that are loaded by agent or call, one line for each: see `packed-page.ts`. */
export type PackedContents = "transitions" | "messages" | "prompts" | "calls";

/** The first line of a packed page: everything but rows and contents. */
export interface PackedHead extends Omit<PageData, "rows" | PackedContents> {
  readonly rowCount: number;
  /** The kinds of contents that the page has. */
  readonly holds: readonly PackedContents[];
}

/** A journal row as stored, with its contents. */
export const rowViewSchema = z.object({
  version: z.number().int(),
  cursor: count,
  agentId: z.string(),
  entries: z.array(jsonSchema),
});
export type RowView = DeepReadonly<z.infer<typeof rowViewSchema>>;

export const searchHitSchema = z.object({
  cursor: count,
  agentId: z.string(),
  seq: count,
  turnId: z.string().nullable(),
  /** Type of the entry that contains the text or that added the message to the conversation. */
  entry: z.string(),
  /** Id of the message that contains the text; `null` if the entry itself does. */
  messageId: z.string().nullable(),
  before: z.string(),
  match: z.string(),
  after: z.string(),
});
export type SearchHit = DeepReadonly<z.infer<typeof searchHitSchema>>;
/** `next` is the cursor after which the search continues; `null` once all rows are searched. */
export const searchPageSchema = z.object({ hits: z.array(searchHitSchema), next: count.nullable() });
export type SearchPage = DeepReadonly<z.infer<typeof searchPageSchema>>;

export const ownerRowSchema = z.object({
  agentId: z.string(),
  processId: z.string(),
  pid: z.number().int(),
  epoch: z.number().int(),
  state: processStateSchema,
  /** When the process was last known to be alive. */
  seenAt: time,
});
export type OwnerRow = DeepReadonly<z.infer<typeof ownerRowSchema>>;

/** A process that is registered in the stores, with the agents of the newest runs that it runs. */
export const processRowSchema = feedProcessSchema.extend({
  /** The agents with an open turn that the process runs. */
  agents: z.array(z.object({ runId: z.string(), agentId: z.string(), name: z.string() })),
});
export type ProcessRow = DeepReadonly<z.infer<typeof processRowSchema>>;

export const scheduleRowSchema = z.object({
  key: z.string(),
  /** Name of the definition. */
  name: z.string(),
  /** The agent of every run; `null` if each run has a new one. */
  agentId: z.string().nullable(),
  times: z.string(),
  nextAt: time.nullable(),
  isPaused: z.boolean(),
  counts: z.object({ opened: count, busy: count, missed: count, failed: count }),
  /** The newest runs, oldest first. */
  runs: z.array(z.object({ at: time, outcome: z.string(), runId: z.string().nullable() })),
});
export type ScheduleRow = DeepReadonly<z.infer<typeof scheduleRowSchema>>;

export const queueRowSchema = z.object({
  queue: z.string(),
  waiting: count,
  active: count,
  delayed: count,
  dead: count,
  /** When the oldest waiting job was added and the longest running job began; `null` if no job waits or none runs. */
  waitingSince: time.nullable(),
  activeSince: time.nullable(),
  /** Number of live processes that work on the queue. */
  workers: count,
  /** The newest first, at most 20. */
  deadLetters: z.array(
    z.object({
      jobId: z.string(),
      /** Id of the job's agent or call; `null` if the job's content is not known. */
      of: z.string().nullable(),
      at: time,
      code: z.string(),
      message: z.string(),
      deaths: count,
    }),
  ),
});
export type QueueRow = DeepReadonly<z.infer<typeof queueRowSchema>>;

/**
 * A text to compare between two runs: its beginning, and a hash of the full text without ids of the run. Only hashes
 * from the same server process can be compared.
 */
const comparedTextSchema = z.object({ text: z.string(), hash: z.string() });
export type ComparedText = DeepReadonly<z.infer<typeof comparedTextSchema>>;

/** The contents of one model call and of the tool calls that it asked for, to compare steps of two runs. */
export const stepContentsSchema = z.object({
  agentId: z.string(),
  /** Number of the call's `model.requested` entry. */
  seq: count,
  /** Hash of messages, tools and parameters, without ids of the run; `null` if the prompt cannot be rebuilt. */
  prompt: z.string().nullable(),
  /** `null` if there is no answer yet or it is no longer stored. */
  answer: comparedTextSchema.nullable(),
  calls: z.array(
    z.object({
      callId: z.string(),
      /** The checked or edited arguments, else the model's; `null` if they are not known. */
      arguments: comparedTextSchema.nullable(),
      /** The result as sent to the model; `null` if there is none yet or it is no longer stored. */
      result: comparedTextSchema.nullable(),
    }),
  ),
});
export type StepContents = DeepReadonly<z.infer<typeof stepContentsSchema>>;
/** `next` is the agent to continue after; `null` once all agents are read. With `namesOnly` there are no items. */
export const stepPageSchema = z.object({ items: z.array(stepContentsSchema), next: z.string().nullable() });
export type StepPage = DeepReadonly<z.infer<typeof stepPageSchema>>;

/** A point at which a run can be forked: before a step, or after a turn that has ended. */
export const forkPointSchema = z.object({
  turn: z.number().int().positive(),
  /** `null` for the end of the turn. */
  step: z.number().int().positive().nullable(),
  at: time,
  /** The cursor of its commit. */
  cursor: count,
  /** The model that the step called; `null` for the end of a turn, and for a call that a limit refused. */
  model: z.string().nullable(),
  /** Number of the step's `model.requested` entry, by which its prompt is read; `null` if it has none. */
  seq: count.nullable(),
  /** Id of the message with which the turn began; `null` if it had no input. */
  inputId: z.string().nullable(),
});
export type RunForkPoint = DeepReadonly<z.infer<typeof forkPointSchema>>;
export const runForksSchema = z.object({
  /** The run's first origin, its forks, their forks and so on: origins before their forks, siblings by age. */
  family: z.array(runRowSchema),
  /** Whether all runs that may be forks of the family were looked at. */
  isWhole: z.boolean(),
  points: z.array(forkPointSchema),
  /** Names of the models with which a fork can run; `null` if the server of this page cannot fork the run. */
  models: z.array(z.string()).nullable(),
});
export type RunForks = DeepReadonly<z.infer<typeof runForksSchema>>;

const positive = z.number().positive();
const wholePositive = z.number().int().positive();
/** The body of `POST /api/runs/{id}/fork`. */
export const forkBodySchema = z.strictObject({
  /** Idempotency key: sending a fork again with its key makes no second one while the process lives. */
  key: z.string().min(1).max(200),
  at: z.strictObject({ turn: wholePositive, step: wholePositive.optional() }),
  input: z.string().optional(),
  /** One of the `models`. Default: that of the definition. */
  model: z.string().optional(),
  edit: z
    .strictObject({
      prompt: z.string().optional(),
      instructions: z.string().optional(),
      /** Texts of results by the ids of their calls. */
      messages: z.record(z.string(), z.string()).optional(),
    })
    .optional(),
  budget: z
    .strictObject({
      maxSteps: wholePositive.optional(),
      maxTokens: wholePositive.optional(),
      maxCost: positive.optional(),
      maxSeconds: positive.optional(),
    })
    .optional(),
});
export type ForkBody = DeepReadonly<z.infer<typeof forkBodySchema>>;
export const forkAnswerSchema = z.object({ runId: z.string() });

/** The answer to `POST /api/runs/{id}/replay`: the run compared with the definitions of the process. */
export const runReplaySchema = z.object({
  isEqual: z.boolean(),
  requests: count,
  calls: count,
  /** What could not be compared, with the number of its occurrences. */
  notCompared: z.record(z.string(), count),
  /** Parts of definitions that differ although they change no request. */
  changed: z.array(z.string()),
  /** The first difference; `null` if there is none. The texts are empty if contents are hidden. */
  divergence: z
    .object({
      agentId: z.string(),
      agentName: z.string(),
      /** From 1; 0 before the first turn. */
      turn: count,
      /** From 1; 0 at the start of the turn. */
      step: count,
      part: z.string(),
      expected: z.string(),
      got: z.string(),
      /** A unified diff: `-` is the recorded line, `+` that of today. */
      diff: z.string(),
    })
    .nullable(),
});
export type RunReplay = DeepReadonly<z.infer<typeof runReplaySchema>>;

/** The body of `POST /api/requests/{id}/decision`; `argumentsHash` is the hash in the request that the person saw. */
export const decisionBodySchema = z.strictObject({
  verdict: requestVerdictSchema.exclude(["expired"]),
  argumentsHash: z.string().optional(),
  reason: z.string().max(10_000).optional(),
  /** With `edited`. */
  arguments: jsonSchema.optional(),
  /** With `answered`. */
  result: z.string().optional(),
  isError: z.boolean().optional(),
});
export type DecisionBody = DeepReadonly<z.infer<typeof decisionBodySchema>>;

export const abortBodySchema = z.strictObject({ reason: z.string().max(10_000).optional() });
export type AbortBody = DeepReadonly<z.infer<typeof abortBodySchema>>;
export const agentBodySchema = z.strictObject({ definition: z.string(), agentId: z.string().optional() });
export type AgentBody = DeepReadonly<z.infer<typeof agentBodySchema>>;
const imageUrl = z.string().regex(/^data:image\/[a-z0-9.+-]+;base64,[A-Za-z0-9+/=]*$/);
export const turnBodySchema = z.strictObject({
  /** Idempotency key: sending a turn again with its key starts no second turn. */
  key: z.string().min(1).max(200),
  text: z.string(),
  images: z.array(imageUrl).max(8).optional(),
  ifBusy: z.enum(["refuse", "queue", "supersede", "steer"]).optional(),
});
export type TurnBody = DeepReadonly<z.infer<typeof turnBodySchema>>;
export const agentAnswerSchema = z.object({ agentId: z.string(), definition: definitionRefSchema });
/** `step`: the open turn has the text, and its model call of that step sees it. */
export const turnAnswerSchema = z.object({ turnId: z.string(), step: z.number().optional() });
export type TurnAnswer = DeepReadonly<z.infer<typeof turnAnswerSchema>>;

/** The body of the answer to a failed HTTP request. Answers 401 and 403 have no body. */
export const failureSchema = z.object({
  error: z.object({
    code: z.string(),
    message: z.string(),
    /** Errors by field, if fields of the form are invalid. */
    issues: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
    /** The current state of the request for a decision, if another client decided it first. */
    request: agentRequestSchema.optional(),
  }),
});
export type Failure = DeepReadonly<z.infer<typeof failureSchema>>;
