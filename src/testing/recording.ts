import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { describeFileError, describeValue, redactedText } from "../base/index.ts";
import { definitionHashesOf, type StoredConversation } from "../context/index.ts";
import { InvalidInputError, NotFoundError, UnsupportedError } from "../errors/index.ts";
import {
  type AgentRecord,
  type AgentRequest,
  type AssistantMessage,
  DEFAULT_TENANT,
  type Entry,
  type EntryOf,
  type Json,
  type Message,
  type StoredDefinition,
  type ToolMessage,
} from "../state/index.ts";
import {
  isIntactDefinition,
  readRunFile,
  type StoredAgent,
  type StoredRow,
  type StoredTree,
  type Stores,
} from "../stores/index.ts";

/** A stored tree: any agent of it, in open stores. */
export interface StoredRecording {
  /** The open stores that have the tree. */
  readonly stores: Stores;
  /** The id of any agent of the tree. */
  readonly agentId: string;
  /** Default: the tenant of runtimes without one. */
  readonly tenant?: string | undefined;
}

/** Where a recorded run is: the path of a file that `troupe export ID --json FILE` wrote, or a tree in stores. */
export type RecordingSource = string | URL | StoredRecording;

/** One attempt of a model call: its intent, and its outcome unless the run was cut off before it. */
export interface RecordedAttempt {
  readonly requested: EntryOf<"model.requested">;
  readonly outcome: EntryOf<"model.responded"> | EntryOf<"model.failed"> | undefined;
}

/** The model call of one step. */
export interface RecordedAnswer {
  readonly turnId: string;
  readonly step: number;
  readonly attempts: readonly RecordedAttempt[];
  /** `undefined` if the step has no answer, or the conversation was cleared. */
  readonly message: AssistantMessage | undefined;
}

/** One tool call. */
export interface RecordedResult {
  readonly callId: string;
  readonly name: string;
  readonly effect: EntryOf<"call.gated">["effect"] | undefined;
  /** The validated arguments; `undefined` if the call was not gated. */
  readonly arguments: Json | undefined;
  readonly starts: readonly EntryOf<"tool.started">[];
  /** `undefined` if the call has no result. */
  readonly settled: EntryOf<"tool.settled"> | undefined;
  /** The result as the model saw it. */
  readonly message: ToolMessage | undefined;
}

/** One agent of a recorded tree. */
export class RecordedAgent {
  readonly stored: StoredAgent;
  /** Its rows, in order. */
  readonly rows: readonly StoredRow[];
  readonly entries: readonly Entry[];
  /** Its messages in the order in which they were added. */
  readonly messages: readonly Message[];
  readonly #answers = new Map<string, RecordedAnswer & { readonly attempts: RecordedAttempt[] }>();
  readonly #results = new Map<string, RecordedResult>();

  constructor(stored: StoredAgent, rows: readonly StoredRow[]) {
    this.stored = stored;
    this.rows = rows;
    this.entries = rows.flatMap((row) => row.entries);
    this.messages = rows.flatMap((row) => row.messages);
    const byId = new Map(this.messages.map((message) => [message.id, message]));
    for (const entry of this.entries) {
      this.#noteAnswer(entry, byId);
      this.#noteResult(entry, byId);
    }
  }

  get record(): AgentRecord {
    return this.stored.record;
  }

  get agentId(): string {
    return this.stored.record.agentId;
  }

  /** Its open and decided requests. */
  get requests(): readonly AgentRequest[] {
    return this.stored.requests;
  }

  /** All answers, in the order in which they were first asked for. */
  get answers(): readonly RecordedAnswer[] {
    return [...this.#answers.values()];
  }

  /** All tool calls, in the order in which they were gated or started. */
  get results(): readonly RecordedResult[] {
    return [...this.#results.values()];
  }

  answer(turnId: string, step: number): RecordedAnswer | undefined {
    return this.#answers.get(`${turnId}:${step}`);
  }

  result(callId: string): RecordedResult | undefined {
    return this.#results.get(callId);
  }

  request(requestId: string): AgentRequest | undefined {
    return this.requests.find((request) => request.requestId === requestId);
  }

  #noteAnswer(entry: Entry, byId: ReadonlyMap<string, Message>): void {
    if (entry.type === "model.requested") {
      const { turnId, step, messageId } = entry;
      const message = byId.get(messageId);
      const known = this.#answers.get(`${turnId}:${step}`);
      const attempts = known?.attempts ?? [];
      attempts.push({ requested: entry, outcome: undefined });
      if (!known) {
        const answer = message?.role === "assistant" ? message : undefined;
        this.#answers.set(`${turnId}:${step}`, { turnId, step, attempts, message: answer });
      }
    }
    if (entry.type !== "model.responded" && entry.type !== "model.failed") return;
    const attempts = this.#answers.get(`${entry.turnId}:${entry.step}`)?.attempts;
    const last = attempts?.pop();
    if (last) attempts?.push({ ...last, outcome: entry });
  }

  #noteResult(entry: Entry, byId: ReadonlyMap<string, Message>): void {
    if (entry.type !== "call.gated" && entry.type !== "tool.started" && entry.type !== "tool.settled") return;
    const { callId, name } = entry;
    const before: RecordedResult = this.#results.get(callId) ?? {
      callId,
      name,
      effect: undefined,
      arguments: undefined,
      starts: [],
      settled: undefined,
      message: undefined,
    };
    this.#results.set(callId, resultAfter(before, entry, byId));
  }
}

function resultAfter(
  before: RecordedResult,
  entry: EntryOf<"call.gated"> | EntryOf<"tool.started"> | EntryOf<"tool.settled">,
  byId: ReadonlyMap<string, Message>,
): RecordedResult {
  switch (entry.type) {
    case "call.gated":
      return { ...before, effect: entry.effect, arguments: entry.arguments };
    case "tool.started":
      return {
        ...before,
        effect: entry.effect,
        arguments: entry.arguments ?? before.arguments,
        starts: [...before.starts, entry],
      };
    default: {
      const message = byId.get(entry.messageId);
      return { ...before, settled: entry, message: message?.role === "tool" ? message : undefined };
    }
  }
}

/** A recorded run in memory. Nothing in it changes, and reading it touches no store. */
export interface Recording {
  readonly tree: StoredTree;
  readonly tenant: string;
  readonly rootAgentId: string;
  /** Parents before their children. */
  readonly agents: readonly RecordedAgent[];
  /** The stored definitions by their hash; a redacted one keeps the hash of its original. */
  readonly definitions: ReadonlyMap<string, StoredDefinition>;
  /** How many texts contain `[redacted]`. */
  readonly redacted: number;
  agent(agentId: string): RecordedAgent | undefined;
}

/**
 * Reads a recorded run.
 * @throws InvalidInputError if the file cannot be read or is not an exported run.
 * @throws NotFoundError if the stores have no such agent.
 * @throws UnsupportedError for a file written with `--names-only`, because it has no texts.
 */
export async function readRecording(source: RecordingSource): Promise<Recording> {
  if (typeof source === "string" || source instanceof URL) return await recordingOfFile(source);
  const { stores, agentId, tenant = DEFAULT_TENANT } = source;
  const record = await stores.readAgent({ tenant, agentId });
  const tree = record && (await stores.exportTree(tenant, record.rootAgentId));
  if (!tree) throw new NotFoundError(`there is no agent "${agentId}" in these stores`);
  return recordingOf(tree);
}

/** A recording of an exported tree. */
export function recordingOf(tree: StoredTree): Recording {
  const rows = Map.groupBy(tree.rows, (row) => row.agentId);
  const agents = tree.agents.map((stored) => new RecordedAgent(stored, rows.get(stored.record.agentId) ?? []));
  const byId = new Map(agents.map((agent) => [agent.agentId, agent]));
  return {
    tree,
    tenant: tree.tenant,
    rootAgentId: tree.rootAgentId,
    agents,
    definitions: new Map(tree.definitions.map((definition) => [definition.hash, definition])),
    redacted: redactedIn([tree.rows.map(({ entries, messages }) => [entries, messages]), tree.definitions]),
    agent: (agentId) => byId.get(agentId),
  };
}

/** The stored data from which the prompts of a recorded agent are rebuilt. */
export function conversationOf({ definitions }: Recording, agent: RecordedAgent): StoredConversation {
  const { record, entries, messages } = agent;
  const used = definitionHashesOf(entries).flatMap((hash) => definitions.get(hash) ?? []);
  return { agent: record, entries, messages, definitions: new Map(used.map((one) => [one.hash, one])) };
}

/** The tree for stores, which accept only definitions that match their hash: without the redacted ones. */
export function importableTree({ tree }: Recording): StoredTree {
  return { ...tree, definitions: tree.definitions.filter(isIntactDefinition) };
}

async function recordingOfFile(source: string | URL): Promise<Recording> {
  const path = typeof source === "string" ? source : filePathOf(source);
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    throw new InvalidInputError(describeFileError(path, cause), { cause });
  }
  const { tree, namesOnly } = readRunFile(text);
  if (!namesOnly) return recordingOf(tree);
  throw new UnsupportedError(
    `${path} was written with --names-only and has no texts, so that no prompt can be compared; export it without that option`,
  );
}

function filePathOf(url: URL): string {
  if (url.protocol === "file:") return fileURLToPath(url);
  throw new InvalidInputError(`a recording is read from a file: URL, not from ${describeValue(url.href)}`);
}

function redactedIn(value: unknown): number {
  if (typeof value === "string") return value.includes(redactedText) ? 1 : 0;
  if (typeof value !== "object" || value === null) return 0;
  let count = 0;
  for (const field of Object.values(value)) count += redactedIn(field);
  return count;
}
