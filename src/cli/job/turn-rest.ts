import type { Agent, Runtime, TurnRest } from "../../runtime/index.ts";
import { DEFAULT_TENANT, rootOf } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import { allAgents } from "./all-agents.ts";

/**
 * How a turn comes to rest. It waits for somebody only when every agent of its tree has heard what was decided: a decision
 * that still lies in an inbox sets work going.
 */
export async function restOfTurn(runtime: Runtime, agent: Agent, turnId: string): Promise<TurnRest> {
  const rootAgentId = rootOf(agent.agentId);
  for (;;) {
    const news = nextNews(runtime, rootAgentId);
    try {
      const rest = await agent.turn(turnId).settled;
      if (rest.status !== "waiting" || rest.reason !== "request") return rest;
      if (!(await hasUnheard(runtime.stores, rootAgentId))) return rest;
      await news.promise;
    } finally {
      news.stop();
    }
  }
}

/** The next thing that is committed in a tree, by this process or another. */
function nextNews(runtime: Runtime, rootAgentId: string): { readonly promise: Promise<void>; stop(): void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  const subscription = runtime.subscribe((event) => {
    if (event.rootAgentId === rootAgentId && event.cursor !== null) resolve();
  });
  const stopWatching = runtime.stores.onForeignWrite(resolve);
  return {
    promise,
    stop() {
      subscription.unsubscribe();
      stopWatching();
    },
  };
}

async function hasUnheard(stores: Stores, rootAgentId: string): Promise<boolean> {
  const agents = await allAgents(stores, { tenant: DEFAULT_TENANT, rootAgentId });
  for (const { agentId, openTurnId } of agents) {
    if (openTurnId === null) continue;
    const items = await stores.inbox({ tenant: DEFAULT_TENANT, agentId });
    if (items.some(({ kind }) => kind === "decision" || kind === "child.ended")) return true;
  }
  return false;
}
