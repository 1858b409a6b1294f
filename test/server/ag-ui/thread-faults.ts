import type { Message as ClientMessage } from "@ag-ui/core";
import { type Agent, type Message, type Runtime, textOf } from "troupe";
import type { Thread } from "./official-client.ts";

/** The differences between a client's messages and the stored ones. */
export async function threadFaults(runtime: Runtime, agent: Agent, { client }: Thread): Promise<string[]> {
  const faults: string[] = [];
  const shown = Map.groupBy(client.messages, ({ subagentRunId }) => subagentRunId ?? agent.agentId);
  for (const agentId of new Set([agent.agentId, ...shown.keys()])) {
    const isRoot = agentId === agent.agentId;
    // A subagent that was aborted with its parent ends after the run.
    if (!isRoot && (await isAborted(runtime, agentId))) continue;
    const stored = await runtime.stores.messages({ tenant: runtime.tenant, agentId });
    const expected = stored.flatMap((message) => storedLine(message, isRoot) ?? []);
    const given = (shown.get(agentId) ?? []).flatMap((message) => shownLine(message) ?? []);
    const name = isRoot ? "the thread" : agentId;
    const lacking = expected.filter((line) => !given.includes(line));
    const strange = given.filter((line) => !expected.includes(line));
    for (const line of lacking) faults.push(`${name} lacks ${line}`);
    for (const line of strange) faults.push(`${name} has ${line}`);
    if (lacking.length + strange.length > 0) continue;
    if (given.length !== expected.length) faults.push(`${name} has duplicates: ${given.join(", ")}`);
    const [one, other] = [given, expected].map((lines) => inOrder(lines).join("\n"));
    if (one !== other) faults.push(`${name} is out of order: ${one} | ${other}`);
  }
  return faults;
}

async function isAborted({ stores, tenant }: Runtime, agentId: string): Promise<boolean> {
  const rows = await stores.readJournal({ tenant, agentId }, 1);
  return rows.some(({ entries }) =>
    entries.some((entry) => entry.type === "turn.ended" && entry.outcome === "stopped"),
  );
}

/** The lines with the results after each answer sorted, because calls end in any order. */
function inOrder(lines: readonly string[]): readonly string[] {
  const found: string[] = [];
  let results: string[] = [];
  for (const line of lines) {
    if (line.startsWith("result ")) results.push(line);
    else {
      found.push(...results.toSorted(), line);
      results = [];
    }
  }
  return [...found, ...results.toSorted()];
}

function storedLine(message: Message, isRoot: boolean): string | undefined {
  const text = textOf(message.content);
  if (message.role === "tool") return resultLine(message.callId, text);
  if (message.role === "assistant") {
    if (message.origin.startsWith("hook:")) return undefined;
    const calls = (message.toolCalls ?? []).map((call) => [call.callId, call.name, call.arguments]);
    return text === "" && calls.length === 0 ? undefined : answerLine(message.id, text, calls);
  }
  // Messages that hooks and steps add for the model are not messages of the user.
  return message.role === "user" && isRoot && message.metadata === undefined ? saidLine(text) : undefined;
}

function shownLine(message: ClientMessage): string | undefined {
  if (message.role === "tool") return resultLine(message.toolCallId, textIn(message.content));
  if (message.role === "user") return saidLine(textIn(message.content));
  if (message.role !== "assistant") return undefined;
  const calls = (message.toolCalls ?? []).map((call) => [call.id, call.function.name, call.function.arguments]);
  return answerLine(message.id, message.content ?? "", calls);
}

function textIn(content: unknown): string {
  return typeof content === "string" ? content : JSON.stringify(content);
}

function saidLine(text: string): string {
  return `said ${JSON.stringify(text)}`;
}

function answerLine(id: string, text: string, calls: unknown): string {
  return `answer ${id} ${JSON.stringify([text, calls])}`;
}

function resultLine(callId: string, text: string): string {
  return `result ${callId} ${JSON.stringify(text)}`;
}
