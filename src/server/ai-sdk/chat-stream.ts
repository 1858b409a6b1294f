import { type AgentRequest, type TroupeEvent } from "../../state/index.ts";
import type { UseByModel } from "../../budget/index.ts";
import type { Caller } from "../core/caller.ts";
import type { SseFrame } from "../core/sse.ts";
import { eventsUntilRest, messageOfEvent } from "../core/turn-events.ts";
import type { UiChunk } from "./chunks.ts";
import type { FollowedTurn } from "./chat-start.ts";
import { MessageTranslation } from "./message-translation.ts";

/** The headers of a UI message stream. */
export const streamHeaders = { "x-vercel-ai-ui-message-stream": "v1" } as const;

/**
 * The chunks of a turn until it ends, or waits for a decision or a resume. If the reader leaves, the stream ends without `[DONE]`.
 */
export async function* chatFrames(
  caller: Caller,
  followed: FollowedTurn,
  signal: AbortSignal,
): AsyncGenerator<SseFrame> {
  const { agent, turnId, from, client } = followed;
  const translation = new MessageTranslation({ turnId, rootAgentId: agent.rootAgentId, client });
  yield* framesOf(translation.start());
  const events = eventsUntilRest(caller, followed, { from, signal });
  try {
    for (;;) {
      const { done, value } = await events.next();
      if (done !== true) {
        const [message, request] = [await messageOfEvent(caller, value), await requestOfEvent(caller, value)];
        yield* framesOf(translation.take(value, { message, request }));
        continue;
      }
      if (value === undefined) return;
      const models = (await spendingByTurn(caller, agent.rootAgentId)).get(turnId) ?? {};
      if (value.status !== "waiting") yield* framesOf(translation.end(models));
      else if (value.reason === "paused") yield* framesOf(translation.pause(models));
      else yield* framesOf(translation.wait(value.requests, models));
      yield { data: "[DONE]" };
      return;
    }
  } finally {
    await events.return(undefined);
  }
}

function framesOf(chunks: readonly UiChunk[]): readonly SseFrame[] {
  return chunks.map((chunk) => ({ data: JSON.stringify(chunk) }));
}

/** The request that an event opens or decides. */
export async function requestOfEvent(caller: Caller, event: TroupeEvent): Promise<AgentRequest | undefined> {
  if (event.type !== "request.opened" && event.type !== "request.decided") return undefined;
  return await caller.request(event.requestId);
}

/** The spending of each turn of the root agent, with its subagents. */
export async function spendingByTurn(
  { runtime }: Caller,
  rootAgentId: string,
): Promise<ReadonlyMap<string, UseByModel>> {
  const accounts = await runtime.accounts(rootAgentId);
  return new Map(
    accounts.flatMap(({ agentId, turnId, models }) =>
      agentId === rootAgentId && turnId !== null ? [[turnId, models] as const] : [],
    ),
  );
}
