import type { ListTasksRequest, ListTasksResponse, TaskState as SdkTaskState } from "@a2a-js/sdk";
import type { TurnRecord } from "../../state/index.ts";
import { formatTurnCursor } from "../../stores/index.ts";
import { agentOfContext, assertCount, type Sending, taskOfId } from "./send-message.ts";
import { taskOf } from "./task.ts";
import { stateOf, stateOfRecord } from "./task-status.ts";
import { urlIdOf } from "../core/url-ids.ts";
import type { TaskState, WireTask } from "./wire.ts";

/** A page of a caller's tasks, the newest status first. */
export interface TaskPage extends Omit<ListTasksResponse, "tasks"> {
  readonly tasks: readonly WireTask[];
}

const DEFAULT_PAGE = 50;
const LARGEST_PAGE = 100;
/** Upper limit of the task count. */
const MOST_COUNTED = 1_000;

export async function listTasks(sending: Sending, request: ListTasksRequest): Promise<TaskPage> {
  const { caller } = sending;
  const { pageSize, after, historyLength = 0, includeArtifacts = false } = checked(sending, request);
  const query = await queryOf(sending, request);
  if (query === undefined) return { tasks: [], nextPageToken: "", pageSize, totalSize: 0 };
  const found: TurnRecord[] = [];
  for await (const record of matching(sending, query, after)) if (found.push(record) > pageSize) break;
  const tasks = await Promise.all(
    found.slice(0, pageSize).map(async (record) => {
      const task = await taskOfId(sending, urlIdOf(record.turnId));
      return await taskOf(caller, task, { record, historyLength, withArtifacts: includeArtifacts });
    }),
  );
  let totalSize = 0;
  for await (const _ of matching(sending, query, undefined)) if ((totalSize += 1) === MOST_COUNTED) break;
  const last = found.length > pageSize ? found[pageSize - 1] : undefined;
  const nextPageToken = last === undefined ? "" : Buffer.from(formatTurnCursor(last)).toString("base64url");
  return { tasks, nextPageToken, pageSize, totalSize };
}

function checked({ sdk }: Sending, request: ListTasksRequest) {
  const { errors } = sdk;
  const { pageSize = DEFAULT_PAGE, pageToken, historyLength, includeArtifacts } = request;
  if (!Number.isSafeInteger(pageSize) || pageSize < 1 || pageSize > LARGEST_PAGE) {
    throw new errors.RequestMalformedError(`pageSize must be a whole number from 1 to ${LARGEST_PAGE}`);
  }
  assertCount(sdk, "historyLength", historyLength);
  const after = pageToken === "" ? undefined : Buffer.from(pageToken, "base64url").toString();
  if (after !== undefined && !/^\d+:.+#\d+$/.test(after)) {
    throw new errors.RequestMalformedError("pageToken must be the nextPageToken of an earlier page");
  }
  return { pageSize, after, historyLength, includeArtifacts };
}

interface Query {
  readonly agentId: string | undefined;
  readonly state: TaskState | undefined;
  /** Milliseconds since the epoch. */
  readonly since: number;
}

/** Returns `undefined` if the caller has no such context. */
async function queryOf(sending: Sending, request: ListTasksRequest): Promise<Query | undefined> {
  const { codecs, errors } = sending.sdk;
  const { contextId, status, statusTimestampAfter } = request;
  const since =
    statusTimestampAfter === undefined || statusTimestampAfter === "" ? 0 : Date.parse(statusTimestampAfter);
  if (Number.isNaN(since)) throw new errors.RequestMalformedError("statusTimestampAfter must be a time in ISO 8601");
  const states: typeof SdkTaskState = codecs.TaskState;
  if (status === states.UNRECOGNIZED) throw new errors.RequestMalformedError("status must be a state of a task");
  const state = status === states.TASK_STATE_UNSPECIFIED ? undefined : (states[status] as TaskState);
  if (contextId === "") return { agentId: undefined, state, since };
  const agent = await agentOfContext(sending, contextId);
  return agent && { agentId: agent.agentId, state, since };
}

async function* matching(
  { caller, definition }: Sending,
  { agentId, state, since }: Query,
  from: string | undefined,
): AsyncGenerator<TurnRecord, void, undefined> {
  const isOfDefinition = new Map<string, boolean>();
  let after = from;
  do {
    const page = await caller.turns({ agentId, limit: LARGEST_PAGE, after });
    for (const record of page.items) {
      if (!isOfDefinition.has(record.agentId)) {
        const agent = await caller.agent(record.agentId);
        isOfDefinition.set(record.agentId, agent.definition.name === definition);
      }
      if (isOfDefinition.get(record.agentId) !== true || record.changedAt < since) continue;
      if (state === undefined || state === (await currentState(caller, record))) yield record;
    }
    after = page.next ?? undefined;
  } while (after !== undefined);
}

async function currentState(caller: Sending["caller"], record: TurnRecord): Promise<TaskState> {
  const known = stateOfRecord(record);
  if (known !== undefined) return known;
  const { turn } = await caller.turn(record.turnId);
  return stateOf(await turn.current());
}
