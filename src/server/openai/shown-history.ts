import type { Agent } from "../../runtime/index.ts";
import { type AgentRecord, type AgentRequest, type Message, textOf } from "../../state/index.ts";
import type { Caller } from "../core/caller.ts";
import { addBlock, type Block, isSameText, PREFACE, withoutImages, shownText } from "./chat-request.ts";

/** An item of an agent's conversation as clients of this protocol see it, in order. */
export type ShownItem = { readonly id: string; readonly turnId: string } & (
  | /** Input of the client; `text` is `null` for a result of its tool. */ {
      readonly kind: "said";
      readonly text: string | null;
    }
  | /** Text of an answer. `isPrompt`: it is the prompt of a request. */ {
      readonly kind: "answer";
      readonly text: string;
      readonly isPrompt: boolean;
    }
);

/** Prefix of this protocol's keys: requests with such a key were decided in the chat. */
export const KEY_ROUTE = "openai.chat";

/** Why approvals of a request without a conversation are rejected. */
export const NO_CONVERSATION = "this request has no conversation in which a person could approve it";

/** The text for a request that a turn waits for; `undefined` for a call of the client's tool, which has its own form. */
export function promptOf({ kind, prompt, requestId }: AgentRequest): string | undefined {
  if (kind === "client") return undefined;
  if (kind === "question") return prompt;
  const what = kind === "approval" ? "approval" : "credentials";
  return `This waits for ${what}: ${prompt}\n(request ${requestId}; an answer here rejects it)`;
}

/** The text that replaces an approval or credentials that the client cannot give. */
export function refusalOf({ prompt }: AgentRequest): string {
  return `(Not done: ${prompt}. ${NO_CONVERSATION.replace(/^t/, "T")}.)`;
}

/**
 * The conversation of an agent as clients see it, read from the store. `wholeAnswers`: keeps only the last text of each
 * answer, for agents that answer with JSON.
 */
export async function shownItems(
  { runtime }: Caller,
  { agentId }: Pick<Agent, "agentId">,
  { wholeAnswers }: { readonly wholeAnswers: boolean },
): Promise<readonly ShownItem[]> {
  const { stores, tenant } = runtime;
  const [messages, requests] = await Promise.all([
    stores.messages({ tenant, agentId }),
    stores.requests({ tenant, rootAgentId: agentId, limit: Number.MAX_SAFE_INTEGER }),
  ]);
  const hasOthers = requests.some((request) => request.agentId !== agentId);
  const below = hasOthers ? await runtime.list({ rootAgentId: agentId, limit: Number.MAX_SAFE_INTEGER }) : [];
  const byStep = Map.groupBy(requests, (request) => stepOf(request, agentId, below));
  const items: ShownItem[] = [];
  for (const message of messages) {
    const item = itemOf(message);
    // The runtime's message for a turn that was ended while waiting; the client has already received the prompt.
    const isOver = message.id.endsWith(":end") && isPrompt(items.at(-1));
    if (item !== undefined && !isOver) items.push(item);
    if (message.role === "assistant") items.push(...itemsOf(byStep.get(message.id) ?? [], turnOf(message.id)));
  }
  return wholeAnswers ? items.filter((item, index) => !isContinued(item, items[index + 1])) : items;
}

function turnOf(messageId: string): string {
  return messageId.split(":", 1)[0] ?? "";
}

function isPrompt(item: ShownItem | undefined): boolean {
  return item?.kind === "answer" && item.isPrompt;
}

/** Whether the next item belongs to the same answer. */
function isContinued(item: ShownItem, next: ShownItem | undefined): boolean {
  return item.kind === "answer" && next?.kind === "answer" && next.turnId === item.turnId;
}

/** The step of the root agent that caused a request, as the id of its message. */
function stepOf(request: AgentRequest, rootAgentId: string, agents: readonly AgentRecord[]): string | undefined {
  let { agentId, callId }: { agentId: string; callId: string | null } = request;
  while (agentId !== rootAgentId) {
    const agent = agents.find((one) => one.agentId === agentId);
    if (agent === undefined) return undefined;
    agentId = agent.parentAgentId ?? rootAgentId;
    callId = agent.parentCallId;
  }
  return callId?.slice(0, callId.lastIndexOf(":"));
}

function itemOf(message: Message): ShownItem | undefined {
  const { id, role, content, metadata } = message;
  const turnId = turnOf(id);
  if (role === "user") {
    const text = shownText(content);
    const isPreface = id === "seed:0" && text.startsWith(PREFACE);
    const isSaid = id.endsWith(":in") || (id.startsWith("seed:") && !isPreface);
    return isSaid && metadata?.is_trace !== true ? { kind: "said", id, turnId, text } : undefined;
  }
  if (role !== "assistant") return undefined;
  const text = textOf(content);
  return text.trim() === "" ? undefined : { kind: "answer", id, turnId, text, isPrompt: false };
}

/** The prompts of one step and the answers given in the chat, by time. */
function itemsOf(requests: readonly AgentRequest[], turnId: string): readonly ShownItem[] {
  const timed = requests.flatMap((request): { readonly at: number; readonly item: ShownItem }[] => {
    const { requestId: id, kind, openedAt, decision, decidedAt, decidedWith } = request;
    const isRefused = decision?.verdict === "rejected" && decision.reason === NO_CONVERSATION;
    const text = isRefused ? refusalOf(request) : promptOf(request);
    const prompt = { kind: "answer", id, turnId, text: text ?? "", isPrompt: !isRefused } as const;
    const asked = text === undefined ? [] : [{ at: openedAt, item: prompt }];
    const isSaidHere = kind === "client" || decidedWith?.key.startsWith(KEY_ROUTE) === true;
    if (decision === null || decidedAt === null || isRefused || !isSaidHere) return asked;
    const said = kind === "client" ? null : (decision.result?.text ?? decision.reason ?? "");
    return [...asked, { at: decidedAt, item: { kind: "said", id, turnId, text: said } }];
  });
  return timed.toSorted((one, other) => one.at - other.at).map(({ item }) => item);
}

/** The available parts of the answer to an input. */
export function answerTo(items: readonly ShownItem[], saidId: string): readonly ShownItem[] {
  let index = items.findLastIndex(({ kind, id }) => kind === "said" && id === saidId);
  if (index < 0) return [];
  const turnId = items[index]?.turnId;
  // Several results may be sent together.
  while (isResult(items[index + 1])) index += 1;
  const rest = items.slice(index + 1);
  const end = rest.findIndex((item) => item.kind === "said" || item.turnId !== turnId);
  return end < 0 ? rest : rest.slice(0, end);
}

function isResult(item: ShownItem | undefined): boolean {
  return item?.kind === "said" && item.text === null;
}

/**
 * Whether the client's history equals this conversation, up to its last answer. It may lack text that came while it
 * waited for a decision, and turns that the agent started itself.
 */
export function isShown(items: readonly ShownItem[], history: readonly Block[]): boolean {
  let index = 0;
  for (const run of runsOf(items.filter((item) => !isResult(item)))) {
    const block = history[index];
    const role = run[0]?.kind === "said" ? "user" : "assistant";
    const texts = textsOf(run);
    if (block?.role !== role) return false;
    // The answer to a question is stored as text only, without images.
    const has = (text: string): boolean => texts.some((one) => isSameText(one, text));
    if (!has(block.text) && !(isDecision(run[0]) && has(withoutImages(block.text)))) return false;
    index += 1;
  }
  return index === history.length;
}

function isDecision(item: ShownItem | undefined): boolean {
  return item?.kind === "said" && !item.id.endsWith(":in") && !item.id.startsWith("seed:");
}

/** Consecutive items of the same role. */
function runsOf(items: readonly ShownItem[]): readonly (readonly ShownItem[])[] {
  const runs: ShownItem[][] = [];
  for (const item of items) {
    const run = runs.at(-1);
    if (run?.[0]?.kind === item.kind) run.push(item);
    else runs.push([item]);
  }
  return runs;
}

/** The texts that a client may have for a run: all of it, or a prefix up to the end of an answer. */
function textsOf(run: readonly ShownItem[]): readonly string[] {
  const texts: string[] = [];
  const blocks: Block[] = [];
  for (const [index, item] of run.entries()) {
    addBlock(blocks, { role: "user", text: item.text ?? "" });
    const isEnd =
      index === run.length - 1 || isPrompt(item) || (item.kind === "answer" && !isContinued(item, run[index + 1]));
    const [block] = blocks;
    if (isEnd && block !== undefined) texts.push(block.text);
  }
  return texts;
}
