import { useEffect, useMemo, useSyncExternalStore } from "react";
import { type AgentSnapshot, AgentView, type ShownAgent } from "./agent-view.ts";
import type { TroupeClient } from "./client.ts";

/** A conversation with an agent, and the actions of a page. */
export interface AgentConversation
  extends AgentSnapshot,
    Readonly<Pick<AgentView, "send" | "steer" | "decide" | "abort">> {
  /** Restarts the view after `broken`. */
  readonly retry: () => void;
}

/**
 * Follows an agent while the component is mounted: `const { messages, text, requests, send, decide } = useAgent(client,
 * { definition: "desk", key: "case 7" })`. After a reload, the same agent shows the same conversation and continues the
 * streaming answer. Create the client outside of the component; the agent may be a new object in each render.
 */
export function useAgent(client: TroupeClient, agent: ShownAgent): AgentConversation {
  const named = JSON.stringify(agent);
  const view = useMemo(() => new AgentView(client, JSON.parse(named) as ShownAgent), [client, named]);
  useEffect(() => {
    view.open();
    return view.close;
  }, [view]);
  const snapshot = useSyncExternalStore(view.subscribe, view.snapshot, view.snapshot);
  return useMemo(() => {
    const { send, steer, decide, abort, open } = view;
    return { ...snapshot, send, steer, decide, abort, retry: open };
  }, [snapshot, view]);
}
