import type { Agent, Message } from "../../src/index.ts";
import type { Entry, EntryOf, EntryType } from "../../src/state/index.ts";
import { textOf } from "../../src/index.ts";
import type { Stores } from "../../src/stores/index.ts";
import type { FakeClock } from "../../src/testing/index.ts";
import { answered } from "./under-way.ts";

/** All committed entries of one agent, in order. */
export async function entriesOf(stores: Stores, agentId: string): Promise<Entry[]> {
  const rows = await stores.readJournal({ tenant: "default", agentId }, 1);
  return rows.flatMap((row): readonly Entry[] => row.entries);
}

/** The committed entries of one kind. */
export async function entriesOfType<Type extends EntryType>(
  stores: Stores,
  agentId: string,
  type: Type,
): Promise<EntryOf<Type>[]> {
  return (await entriesOf(stores, agentId)).filter((entry): entry is EntryOf<Type> => entry.type === type);
}

/** The tool results that the model received, in the order of the conversation. */
export async function toolTextsOf(agent: Agent): Promise<string[]> {
  return toolTexts(await agent.getMessages());
}

export function toolTexts(messages: readonly Message[]): string[] {
  return messages.filter(({ role }) => role === "tool").map(({ content }) => textOf(content));
}

/** The reason why a provider would refuse this conversation; `undefined` if it would accept it. */
export function orderFault(messages: readonly Message[]): string | undefined {
  let open: string[] = [];
  for (const message of messages) {
    if (message.role === "tool") {
      if (!open.includes(message.callId)) return `a result for ${message.callId}, which is not open`;
      open = open.filter((callId) => callId !== message.callId);
      continue;
    }
    if (open.length > 0) return `${message.role} message ${message.id} while ${open.join(", ")} have no result`;
    if (message.role === "assistant") open = (message.toolCalls ?? []).map(({ callId }) => callId);
  }
  return open.length > 0 ? `no result for ${open.join(", ")}` : undefined;
}

const mostRounds = 50_000;

/** Advances the clock in small steps, one in each turn of the event loop, until the work has ended. */
export async function elapse<T>(clock: FakeClock, work: Promise<T>, stepMs = 50): Promise<T> {
  let isOver = false;
  const end = (): void => {
    isOver = true;
  };
  work.then(end, end);
  for (let round = 0; !isOver && round < mostRounds; round += 1) {
    await nextLoopTurn();
    if (!isOver) clock.advance(stepMs);
  }
  if (!isOver) throw new Error(`the work had not ended after ${mostRounds * stepMs} ms of the fake clock`);
  return await work;
}

/** Lets the event loop turn this many times. */
export async function loopTurns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await nextLoopTurn();
}

/** A turn of the event loop takes as long as its store needs to answer. */
async function nextLoopTurn(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  setImmediate(resolve);
  await promise;
  await answered();
}
