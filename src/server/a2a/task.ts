import { NotFoundError } from "../../errors/index.ts";
import type { Agent, Turn } from "../../runtime/index.ts";
import type { AgentRequest, Artifact, Json, TurnRecord } from "../../state/index.ts";
import type { Caller } from "../core/caller.ts";
import { urlIdOf } from "../core/url-ids.ts";
import { messageIdOfKey } from "./message-keys.ts";
import {
  agentMessage,
  endMetadata,
  promptPart,
  stateOf,
  statusMessage,
  type TaskIds,
  timeOf,
  type TurnNow,
} from "./task-status.ts";
import type { WireArtifact, WireMessage, WirePart, WireStatus, WireTask } from "./wire.ts";
import { outputOf } from "../core/turn-events.ts";

/** A task: a turn and its agent. */
export interface TaskTurn {
  readonly agent: Agent;
  readonly turn: Turn;
  readonly turnId: string;
  readonly ids: TaskIds;
}

/** Adds the ids that clients use to a turn. */
export function taskTurnOf(caller: Caller, found: Omit<TaskTurn, "ids">): TaskTurn {
  const { agent, turn, turnId } = found;
  return { agent, turn, turnId, ids: { taskId: urlIdOf(turnId), contextId: contextIdOf(caller, agent) } };
}

/** The name that started the context, or the agent's id if it has no name. */
function contextIdOf(caller: Caller, { agentId, sessionId, definition }: Agent): string {
  const isNamed = sessionId !== null && caller.agentIdOf(definition.name, sessionId) === agentId;
  return isNamed ? sessionId : agentId;
}

export interface TaskParts {
  /** Maximum number of newest messages. Default: all. */
  readonly historyLength?: number | undefined;
  /** Whether to include artifacts. Default true. */
  readonly withArtifacts?: boolean | undefined;
  /** The turn's state, if the caller has already read it. */
  readonly now?: TurnNow | undefined;
  readonly record?: TurnRecord | undefined;
}

/** The task in its current state. */
export async function taskOf(caller: Caller, task: TaskTurn, parts: TaskParts = {}): Promise<WireTask> {
  const { agent, turn, turnId, ids } = task;
  const now = parts.now ?? (await turn.current());
  const record = parts.record ?? (await recordOf(caller, task));
  const { withArtifacts = true, historyLength = Infinity } = parts;
  const artifacts = withArtifacts ? [...(await savedArtifacts(agent, turnId)), ...answerOf(now)] : [];
  const history = historyLength === 0 ? [] : (await historyOf(caller, task, { now, record })).slice(-historyLength);
  const metadata = endMetadata(now);
  return {
    id: ids.taskId,
    contextId: ids.contextId,
    status: statusOf(now, task, record),
    ...(artifacts.length === 0 ? {} : { artifacts }),
    ...(history.length === 0 ? {} : { history }),
    ...(metadata === undefined ? {} : { metadata }),
  };
}

export function statusOf(now: TurnNow, { ids }: TaskTurn, record: Pick<TurnRecord, "changedAt">): WireStatus {
  const message = statusMessage(now, ids);
  const asked =
    now.status === "waiting" && now.reason === "request" ? now.requests.map(({ openedAt }) => openedAt) : [];
  const timestamp = timeOf(Math.max(record.changedAt, ...asked));
  return { state: stateOf(now), ...(message === undefined ? {} : { message }), timestamp };
}

/** The turn's record from the list, with the time of its last change and its request key. */
export async function recordOf(
  caller: Caller,
  { agent, turnId }: Pick<TaskTurn, "agent" | "turnId">,
): Promise<TurnRecord> {
  for (let reading = 1; reading <= MOST_READINGS; reading += 1) {
    let after: string | undefined;
    do {
      const page = await caller.turns({ agentId: agent.agentId, limit: 100, after });
      const found = page.items.find((record) => record.turnId === turnId);
      if (found) return found;
      after = page.next ?? undefined;
    } while (after !== undefined);
  }
  throw new NotFoundError("there is no such turn");
}

/** A turn that moves to the front while the list is read can be missing from all its pages. */
const MOST_READINGS = 5;

/** The answer as an artifact; empty without one. */
export function answerOf(now: TurnNow): readonly WireArtifact[] {
  if (!("stopReason" in now) || stateOf(now) !== "TASK_STATE_COMPLETED") return [];
  return [{ artifactId: ANSWER, name: "answer", parts: answerParts(now.text, outputOf(now)) }];
}

/** Id of the artifact that is the answer's text. */
export const ANSWER = "answer";

export function answerParts(text: string, output: Json | undefined): readonly WirePart[] {
  return [{ text }, ...(output === undefined ? [] : [{ data: output, mediaType: "application/json" }])];
}

async function savedArtifacts(agent: Agent, turnId: string): Promise<readonly WireArtifact[]> {
  const saved = (await agent.getArtifacts()).filter((artifact) => artifact.turnId === turnId);
  const whole = await Promise.all(saved.map(({ artifactId }) => agent.getArtifact(artifactId)));
  return whole.flatMap((artifact) => (artifact ? [wireArtifact(artifact)] : []));
}

export function wireArtifact({ artifactId, name, version, contentType, encoding, content }: Artifact): WireArtifact {
  const file = { filename: name, mediaType: contentType };
  const isJson = encoding === undefined && contentType.startsWith("application/json");
  const data = isJson ? parsed(content) : undefined;
  const raw = encoding ?? "utf8";
  const part = data === undefined ? { raw: Buffer.from(content, raw).toString("base64"), ...file } : { data, ...file };
  return { artifactId, name, parts: [part], metadata: { version } };
}

function parsed(content: string): Json | undefined {
  try {
    return JSON.parse(content) as Json;
  } catch {
    return undefined;
  }
}

/** The messages of the task: the input, the agent's requests and their answers, the answer. */
async function historyOf(
  caller: Caller,
  task: TaskTurn,
  { now, record }: { readonly now: TurnNow; readonly record: TurnRecord },
): Promise<readonly WireMessage[]> {
  const { agent, turnId, ids } = task;
  if (now.status === "queued") return [];
  const [input] = await agent.getTrace(turnId);
  const prompt = input?.type === "user_input" ? input.prompt : "";
  const begun: WireMessage = {
    messageId: messageIdOfKey(record.key) ?? `${ids.taskId}.input`,
    ...ids,
    role: "ROLE_USER",
    parts: [{ text: prompt }],
  };
  const asked = (await requestsOf(caller, task, { now, record })).flatMap((request) => exchangeOf(request, ids));
  const answers = answerOf(now).map(({ parts }) => agentMessage(`${ids.taskId}.answer`, parts, ids));
  const between = asked.toSorted((one, other) => one.at - other.at).map(({ message }) => message);
  return [...(prompt === "" ? [] : [begun]), ...between, ...answers];
}

/** Requests of the turn and of the subagents that worked for it. */
async function requestsOf(
  caller: Caller,
  { agent, turnId }: TaskTurn,
  { now, record }: { readonly now: TurnNow; readonly record: TurnRecord },
): Promise<readonly AgentRequest[]> {
  const filter = { ownerId: caller.ownerId, rootAgentId: agent.rootAgentId, limit: MOST_REQUESTS };
  const found = await caller.runtime.requests(filter);
  const decided = await caller.runtime.requests({ ...filter, status: "decided" });
  const until = "stopReason" in now ? record.changedAt : Infinity;
  // The tree also contains subagents of earlier turns.
  return [...found, ...decided].filter((request) =>
    request.agentId === agent.agentId
      ? request.turnId === turnId
      : request.openedAt >= record.openedAt && request.openedAt <= until,
  );
}

const MOST_REQUESTS = 1_000;

/** The prompt of a request and its answer. */
function exchangeOf(
  request: AgentRequest,
  ids: TaskIds,
): readonly { readonly at: number; readonly message: WireMessage }[] {
  const { requestId, decision, decidedAt, decidedWith, openedAt } = request;
  const id = urlIdOf(requestId);
  const prompt = { at: openedAt, message: agentMessage(`${id}.prompt`, [promptPart(request)], ids) };
  if (decision === null || decision.by === null) return [prompt];
  const text = decision.result?.text ?? decision.reason ?? decision.verdict;
  const answer: WireMessage = {
    messageId: messageIdOfKey(decidedWith?.key ?? null) ?? `${id}.decision`,
    ...ids,
    role: "ROLE_USER",
    parts: [{ text, metadata: { requestId: id, verdict: decision.verdict } }],
  };
  return [prompt, { at: decidedAt ?? openedAt, message: answer }];
}
