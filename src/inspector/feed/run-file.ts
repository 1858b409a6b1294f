import { NotFoundError } from "../../errors/index.ts";
import { type AgentRecord, type Entry, JOURNAL_VERSION } from "../../state/index.ts";
import {
  isIntactDefinition,
  memoryStores,
  readRunFile,
  RUN_FORMAT,
  type RunFile,
  type StoredAgent,
  type StoredRow,
  type Stores,
} from "../../stores/index.ts";
import { Journals } from "./journals.ts";
import { pauses } from "./pauses.ts";
import { RunDigests } from "./run-digests.ts";
import type { RunSource } from "./source.ts";
import { feedEntryOf, type Visibility, shownMessage, shownRequest } from "./visible-values.ts";

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
  const { tree } = readRunFile(text);
  const stores = memoryStores();
  // A redacted definition does not match its hash any more: the page shows the run without it.
  const definitions = tree.definitions.filter(isIntactDefinition);
  await stores.importTree({ ...tree, definitions }, "inspector");
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

/** The agents of a copy, which no process ever runs. */
const atRest = { isHeld: false, sign: 0, lastBatch: null, inbox: [], timers: [] } as const;
