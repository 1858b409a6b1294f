import { z } from "zod";
import { type Agent, type AgentDefinition, defineAgent, defineTool, type Runtime, subagent } from "../../src/index.ts";
import type { LanguageModel } from "../../src/model/index.ts";
import { textOf, type ModelRequest } from "../../src/state/index.ts";
import { loopTurns } from "./journal-probes.ts";
import { TextClient } from "./text-client.ts";

/** A model that streams each answer word by word, one per event-loop turn; every second answer of a turn is its last. */
function wordyModel(tools: readonly string[]): LanguageModel {
  return {
    name: "wordy",
    provider: "test",
    countPromptTokens: () => 1,
    async generate(request, { onDelta, signal }) {
      const isEnd = request.messages.at(-1)?.role === "tool";
      const words = wordsFor(request);
      for (const text of words) {
        signal.throwIfAborted();
        onDelta?.({ type: "text", text });
        await loopTurns(1);
      }
      const toolCalls = isEnd
        ? []
        : tools.map((name, index) => ({ id: `${name}${index}`, name, arguments: '{"input":"x"}' }));
      const finishReason = toolCalls.length === 0 ? ("stop" as const) : ("tool_calls" as const);
      return {
        content: words.join(""),
        toolCalls,
        usage: { inputTokens: 1, outputTokens: 1 },
        finishReason,
        model: "wordy",
      };
    },
  };
}

function wordsFor({ messages }: ModelRequest): string[] {
  const asked = messages.findLast(({ role }) => role === "user");
  const about = asked ? textOf(asked.content) : "";
  return Array.from(
    { length: 10 + ((messages.length * 7) % 25) },
    (_, index) => `${about}.${messages.length}.${index} `,
  );
}

/** A lead that answers, calls a tool and a child that streams too, and answers again. */
export function streamingTeam(): AgentDefinition {
  const look = defineTool({
    name: "look",
    description: "Looks.",
    parameters: z.object({ input: z.string() }),
    effect: "none",
    execute: (_arguments, run) => {
      run.progress({ looking: true });
      return "seen";
    },
  });
  const child = defineAgent({ name: "child", model: wordyModel([]) });
  return defineAgent({ name: "lead", model: wordyModel(["look", "child"]), tools: [look, subagent(child)] });
}

export interface Cut {
  /** The number of live events after which the client is cut off, in the middle of an answer. */
  readonly after: number;
  /** Event-loop turns until it reconnects. */
  readonly pause: number;
}

/** A client that is cut off and reconnects, until a turn has ended; after the last cut it stays. */
export async function watchedOverCuts(runtime: Runtime, lastTurnId: string, cuts: readonly Cut[]): Promise<TextClient> {
  const client = new TextClient();
  for (const { after, pause } of [...cuts, { after: Number.POSITIVE_INFINITY, pause: 0 }]) {
    let left = after;
    for await (const event of runtime.follow("f", { after: client.cursor })) {
      client.take(event);
      if (event.turnId === lastTurnId && event.type === "turn.completed" && event.agentId === "f") return client;
      if (event.cursor === null) left -= 1;
      if (left <= 0) break;
    }
    await loopTurns(pause);
  }
  return client;
}

/** Turns one after the other. */
export async function talk(agent: Agent, turns: number): Promise<void> {
  for (let turn = 1; turn <= turns; turn += 1) await agent.executeTurn(`t${turn}`).result;
}

/** The faults in a client's events; empty if they equal the journal. */
export async function faultsOf(client: TextClient, runtime: Runtime): Promise<string[]> {
  const faults = [...client.faults];
  const whole = new TextClient();
  for await (const event of runtime.follow("f")) {
    whole.take(event);
    if (event.cursor === client.cursor) break;
  }
  const [given, stored] = [client.durable, whole.durable].map((events) => events.map((event) => JSON.stringify(event)));
  if (given?.join("\n") !== stored?.join("\n"))
    faults.push(`${given?.length} durable events, ${stored?.length} are stored`);
  for (const [step, text] of client.shown) {
    const [agentId = "", turnId = "", number = ""] = step.split(" ");
    const messages = await runtime.stores.messagesById({ tenant: runtime.tenant, agentId }, [`${turnId}:${number}`]);
    const kept = messages[0] ? textOf(messages[0].content) : "";
    // A step of which the client received nothing need not be completed.
    if (text !== "" && text !== kept)
      faults.push(`${step} shows ${JSON.stringify(text)}, stored is ${JSON.stringify(kept)}`);
  }
  return faults;
}

/** The number of steps of which a client received text. */
export function stepsShown(client: TextClient): number {
  return [...client.shown.values()].filter((text) => text !== "").length;
}
