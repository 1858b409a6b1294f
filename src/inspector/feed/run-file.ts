import { z } from "zod";
import { accountSchema, waiterSchema } from "../../budget/index.ts";
import type { DeepReadonly } from "../../base/index.ts";
import { InvalidInputError, NotFoundError, TroupeError } from "../../errors/index.ts";
import {
  type AgentRecord,
  agentRecordSchema,
  agentRequestSchema,
  artifactSchema,
  type Entry,
  JOURNAL_VERSION,
  jsonSchema,
  messageSchema,
  readEntries,
  storedDefinitionSchema,
  turnRecordSchema,
} from "../../state/index.ts";
import { memoryStores, type StoredAgent, type StoredRow, type StoredTree, type Stores } from "../../stores/index.ts";
import { Journals } from "./journals.ts";
import { pauses } from "./pauses.ts";
import { RunDigests } from "./run-digests.ts";
import type { RunSource } from "./source.ts";
import { feedEntryOf, type Visibility, shownMessage, shownRequest } from "./visible-values.ts";

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

/** Exports a run for viewing. A run cannot be restored from the file: it lacks leases, timers and inboxes. */
export async function exportRun({ stores, tenant, runId }: RunSource, sight: Visibility): Promise<RunFile> {
  const [tree, waiters] = await Promise.all([stores.exportTree(tenant, runId), stores.waiters(tenant, runId)]);
  if (!tree) throw new NotFoundError(`there is no run "${runId}"`);
  const pause = pauses();
  const shown = async <Part>(part: Part): Promise<Part> => {
    await pause();
    return sight.namesOnly ? part : (sight.redactor.value(part) as Part);
  };
  const file = {
    format: RUN_FORMAT,
    exportedAt: Date.now(),
    namesOnly: sight.namesOnly,
    ...(await shown({ tenant, runId })),
    agents: await each(tree.agents, async (agent) => await shown(shownAgent(agent, sight))),
    accounts: await each(tree.accounts, shown),
    waiters: [...(await each(waiters, shown))],
    rows: await each(tree.rows, async (row) => {
      const { messages, ...others } = shownRow(row, sight);
      return { ...(await shown(others)), messages: await each(messages, shown) };
    }),
    turns: await each(tree.turns, async (turn) =>
      shown({ ...turn, key: null, hash: null, ...(sight.namesOnly ? nobody : {}) }),
    ),
    // A definition consists of texts; without them its hash could not be verified.
    definitions: sight.namesOnly ? [] : await each(tree.definitions, shown),
  };
  return file as RunFile;
}

async function each<Item, Result>(items: readonly Item[], made: (item: Item) => Promise<Result>): Promise<Result[]> {
  const results: Result[] = [];
  for (const item of items) results.push(await made(item));
  return results;
}

const nobody = { ownerId: null, sessionId: null } as const;

function shownAgent({ record, epoch, seq, at, artifacts, requests }: StoredAgent, sight: Visibility) {
  return {
    record: shownRecord(record, sight),
    epoch,
    seq,
    at,
    artifacts: sight.namesOnly ? artifacts.map((one) => ({ ...one, name: one.artifactId, content: "" })) : artifacts,
    requests: requests.map((request) => shownRequest(request, sight)),
  };
}

/** Machines are folded from the first entry, so the checkpoint is not needed. */
function shownRecord(record: AgentRecord, { namesOnly }: Visibility): AgentRecord {
  const shown = { ...record, checkpoint: null };
  if (!namesOnly) return shown;
  const { error, abort, pause } = record;
  return {
    ...shown,
    ...nobody,
    metadata: {},
    error: error && { ...error, message: "" },
    abort: abort && { ...abort, by: "", reason: "" },
    pause: pause && { ...pause, by: "" },
  };
}

function shownRow({ cursor, version, agentId, entries, messages }: StoredRow, sight: Visibility) {
  if (!sight.namesOnly) return { version, cursor, agentId, entries, messages };
  return {
    version: JOURNAL_VERSION,
    cursor,
    agentId,
    entries: entries.map((entry): Entry => ({ ...feedEntryOf(entry, sight), epoch: entry.epoch }) as Entry),
    messages: messages.map((message) => shownMessage(message, sight)),
  };
}

/** Reads an exported run into memory. Throws `InvalidInputError` unless the text is a run of the format `RUN_FORMAT`. */
export async function importRun(text: string): Promise<{ stores: Stores; tenant: string; runId: string }> {
  const tree = treeOf(text);
  const stores = memoryStores();
  await stores.importTree(tree, "inspector");
  return { stores, tenant: tree.tenant, runId: tree.rootAgentId };
}

/** A snapshot of the run in memory: all reads see the same moment and no longer load the stores. */
export async function copyOfRun({ stores, tenant, runId, root }: RunSource): Promise<RunSource> {
  const tree = await stores.exportTree(tenant, runId);
  if (!tree) throw new NotFoundError(`there is no run "${runId}"`);
  const copy = memoryStores();
  const agents = tree.agents.map((agent) => ({ ...agent, ...atRest }));
  await copy.importTree({ ...tree, agents, projections: [] }, "inspector");
  return {
    stores: copy,
    tenant,
    runId,
    root: tree.agents[0]?.record ?? root,
    journals: new Journals(),
    digests: new RunDigests(),
  };
}

function treeOf(text: string): StoredTree {
  try {
    const parsed = runFileSchema.safeParse(JSON.parse(text));
    if (!parsed.success) {
      const [issue] = parsed.error.issues;
      throw noRun(`${issue?.message} at ${issue?.path.join(".") || "its top"}`);
    }
    const { tenant, runId, agents, accounts, waiters, rows, turns, definitions } = parsed.data;
    return {
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

function noRun(why: string, cause?: unknown): InvalidInputError {
  return new InvalidInputError(
    `invalid run: ${why}; expected a file of the format ${RUN_FORMAT}, as "troupe export --json" writes it`,
    { cause },
  );
}
