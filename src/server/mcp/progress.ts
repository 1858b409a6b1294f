import type { ServerContext } from "@modelcontextprotocol/server";
import type { TroupeEvent } from "../../state/index.ts";
import type { Caller } from "../core/caller.ts";
import type { StartedTurn } from "../core/plain-message.ts";
import { turnEvents } from "../core/turn-events.ts";

type Followed = Pick<StartedTurn, "agent" | "turn" | "turnId">;

export interface ProgressOptions {
  readonly context: ServerContext;
  /** Whether the client has seen nothing of the turn: then its progress is reported from its beginning. */
  readonly isFresh: boolean;
}

/** Stops the notifications; resolves when the last one is sent. */
export type StopProgress = () => Promise<void>;

/**
 * Sends the steps, the tools and the used tokens of a turn as progress notifications, if the client gave a progress
 * token. A client that cannot be reached only ends the notifications.
 */
export function notifyProgress(
  caller: Caller,
  followed: Followed,
  { context: { mcpReq }, isFresh }: ProgressOptions,
): StopProgress {
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken === undefined) return async () => undefined;
  const stop = new AbortController();
  const send = async (): Promise<void> => {
    let progress = 0;
    let tokens = 0;
    const after = isFresh ? undefined : (await caller.head(followed.agent.rootAgentId)).cursor;
    for await (const event of turnEvents(caller, followed, { after, signal: stop.signal })) {
      if (event.type === "model.responded") tokens += event.usage.inputTokens + event.usage.outputTokens;
      const message = messageOf(event, tokens);
      if (message === undefined || stop.signal.aborted) continue;
      progress += 1;
      await mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, message } });
    }
  };
  const sent = send().catch(() => undefined);
  return async () => {
    stop.abort();
    await sent;
  };
}

function messageOf(event: TroupeEvent, tokens: number): string | undefined {
  const used = tokens === 0 ? "" : `, ${tokens} tokens so far`;
  switch (event.type) {
    case "step.started":
      return `${event.agentName}: step ${event.step ?? 1}${used}`;
    case "tool.started":
      return `${event.agentName}: ${event.name}`;
    case "request.opened":
      return `${event.agentName}: waits for a person`;
    default:
      return undefined;
  }
}
