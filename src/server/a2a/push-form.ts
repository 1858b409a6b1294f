import { z } from "zod";
import { type AgentRequest, agentOfTurn, type Entry, type JournalRow, type Webhook } from "../../state/index.ts";
import type { Caller } from "../core/caller.ts";
import type { Notification, TellingStep, WebhookForm } from "../core/webhooks.ts";
import { answerOf, statusOf, taskOf, type TaskTurn, taskTurnOf, wireArtifact } from "./task.ts";
import { endMetadata, statusFingerprint, stateOf, timeOf, type TurnNow } from "./task-status.ts";
import { isEndState, type StreamItem } from "./wire.ts";

const ROWS_AT_A_TIME = 200;

/** What was sent to a receiver about its task. */
const toldSchema = z.object({
  place: z.string(),
  /** Ids of the requests that the task waits for. */
  open: z.array(z.string()),
});
type Told = z.output<typeof toldSchema>;

/**
 * Push notifications: the items of a stream without text deltas, each read from the stored journal. The first contains
 * the task as it is, the next ones its changes; the last one reports that the task has ended, after the answer.
 */
export const pushForm: WebhookForm = {
  contentType: "application/a2a+json",
  headers: ({ token, scheme, credentials }) => ({
    ...(typeof token === "string" ? { "x-a2a-notification-token": token } : {}),
    ...(typeof scheme === "string" && typeof credentials === "string"
      ? { authorization: `${scheme} ${credentials}` }
      : {}),
  }),
  async next(caller, webhook) {
    const found = taskTurnOf(caller, await caller.turn(webhook.turnId));
    const { contextId } = webhook.details;
    const task = typeof contextId === "string" ? { ...found, ids: { ...found.ids, contextId } } : found;
    return await (webhook.told === null ? firstStep(caller, task) : nextStep(caller, task, webhook));
  },
};

/** Sends the task's current state; the cursor was read before. */
async function firstStep(caller: Caller, task: TaskTurn): Promise<TellingStep> {
  const { stores } = caller.runtime;
  // The head is read before the task, so that no change is missed.
  const head = await stores.treeHead(caller.tenant, task.agent.rootAgentId);
  const now = await task.turn.current();
  const item = { task: await taskOf(caller, task, { now }) };
  const { state, timestamp } = item.task.status;
  return {
    notifications: [notificationOf(task, `task.${state}.${Date.parse(timestamp)}`, item)],
    cursor: head?.cursor ?? 0,
    told: toldOf(now),
    isOver: isEndState(state),
  };
}

async function nextStep(
  caller: Caller,
  task: TaskTurn,
  { cursor, told: before }: Webhook,
): Promise<TellingStep | undefined> {
  const { stores } = caller.runtime;
  const { rootAgentId } = task.agent;
  const rows = await stores.readTree(caller.tenant, rootAgentId, cursor, ROWS_AT_A_TIME);
  let told = toldSchema.parse(before);
  for (const row of rows) {
    const reading = new RowReading(caller, task, told);
    const { items, isEnd } = await reading.take(row);
    if (isEnd) break;
    ({ told } = reading);
    if (items.length === 0) continue;
    const notifications = items.map((item, index) => notificationOf(task, `${row.cursor}.${index}`, item));
    return { notifications, cursor: row.cursor, told, isOver: false };
  }
  const last = rows.at(-1)?.cursor ?? cursor;
  const now = await task.turn.current();
  if (isEndState(stateOf(now))) return await lastStep(caller, task, now, last);
  return rows.length === 0 ? undefined : { notifications: [], cursor: last, told, isOver: false };
}

/** Sends the answer, then the final status. */
async function lastStep(caller: Caller, task: TaskTurn, now: TurnNow, cursor: number): Promise<TellingStep> {
  const { ids } = task;
  const { status } = await taskOf(caller, task, { now, withArtifacts: false, historyLength: 0 });
  const metadata = endMetadata(now);
  const items: readonly StreamItem[] = [
    ...answerOf(now).map((artifact) => ({ artifactUpdate: { ...ids, artifact, append: false, lastChunk: true } })),
    { statusUpdate: { ...ids, status, ...(metadata === undefined ? {} : { metadata }) } },
  ];
  const notifications = items.map((item, index) => notificationOf(task, `end.${index}`, item));
  return { notifications, cursor, told: toldOf(now), isOver: true };
}

/** An agent's id may contain any character. */
function notificationOf({ ids }: TaskTurn, place: string, item: StreamItem): Notification {
  return { id: `${encodeURIComponent(ids.taskId.toWellFormed())}.${place}`, body: item };
}

function toldOf(now: TurnNow): Told {
  const open = now.status === "waiting" && now.reason === "request" ? now.requests : [];
  return { place: statusFingerprint(now), open: open.map(({ requestId }) => requestId) };
}

/** Maps one journal row to the task changes that it causes. */
class RowReading {
  readonly #caller: Caller;
  readonly #task: TaskTurn;
  told: Told;

  constructor(caller: Caller, task: TaskTurn, told: Told) {
    this.#caller = caller;
    this.#task = task;
    this.told = told;
  }

  async take({
    agentId,
    entries,
  }: JournalRow): Promise<{ readonly items: readonly StreamItem[]; readonly isEnd: boolean }> {
    const items: StreamItem[] = [];
    for (const entry of entries) {
      const isOfTask = agentId === this.#task.agent.agentId && "turnId" in entry && entry.turnId === this.#task.turnId;
      if (isOfTask && entry.type === "turn.ended") return { items, isEnd: true };
      items.push(...(isOfTask ? await this.#own(entry) : await this.#others(entry)));
    }
    return { items, isEnd: false };
  }

  async #own(entry: Entry): Promise<readonly StreamItem[]> {
    switch (entry.type) {
      case "turn.started":
      case "model.requested":
        return this.#works(entry);
      case "turn.waiting":
        return await this.#waits(entry, entry.requestIds);
      case "artifact.saved": {
        const artifact = await this.#task.agent.getArtifact(entry.artifactId);
        if (artifact === undefined) return [];
        const update = { ...this.#task.ids, artifact: wireArtifact(artifact), append: false, lastChunk: true };
        return [{ artifactUpdate: update }];
      }
      default:
        return await this.#others(entry);
    }
  }

  /** A subagent may have opened the request that the task waits for. */
  async #others(entry: Entry): Promise<readonly StreamItem[]> {
    if (entry.type !== "request.decided" || !this.told.open.includes(entry.requestId)) return [];
    const left = this.told.open.filter((requestId) => requestId !== entry.requestId);
    return left.length === 0 ? this.#works(entry) : await this.#waits(entry, left);
  }

  #works({ at }: Entry): readonly StreamItem[] {
    const { turnId, ids } = this.#task;
    const now: TurnNow = { status: "running", turnId, step: 0 };
    return this.#changed(now, { statusUpdate: { ...ids, status: { state: stateOf(now), timestamp: timeOf(at) } } });
  }

  async #waits({ at }: Entry, requestIds: readonly string[]): Promise<readonly StreamItem[]> {
    const { turnId, ids } = this.#task;
    const { runtime, tenant } = this.#caller;
    const found = await Promise.all(
      requestIds.map((requestId) => runtime.stores.request({ tenant, agentId: agentOfTurn(requestId) }, requestId)),
    );
    const requests = found.flatMap((request): readonly AgentRequest[] => (request ? [request] : []));
    if (requests.length === 0) return [];
    const now: TurnNow = { status: "waiting", turnId, reason: "request", requests };
    const status = statusOf(now, this.#task, { changedAt: at });
    return this.#changed(now, { statusUpdate: { ...ids, status } });
  }

  #changed(now: TurnNow, item: StreamItem): readonly StreamItem[] {
    const told = toldOf(now);
    if (told.place === this.told.place) return [];
    this.told = told;
    return [item];
  }
}
