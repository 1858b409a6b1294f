import type { Runtime } from "../../runtime/index.ts";
import { readBudgets } from "../job/budget-tree.ts";
import { findAgent } from "../job/roots.ts";
import { readStory } from "../job/story.ts";
import { allRequests, placedRequests } from "../requests/all-requests.ts";
import { budgetLines } from "../view/budget-lines.ts";
import { requestTable } from "../view/request-lines.ts";
import { summaryLines } from "../view/summary.ts";

/** What the commands of a chat show of its tree, as it is stored now. */
export const chatReports = {
  async tree(runtime: Runtime, rootAgentId: string): Promise<string[]> {
    const { agents, accounts } = await readStory(runtime.stores, rootAgentId);
    return summaryLines(agents, { accounts, now: Date.now() });
  },

  async budget(runtime: Runtime, rootAgentId: string, width: number): Promise<string[]> {
    const tree = await readBudgets(runtime.stores, await findAgent(runtime.stores, rootAgentId));
    return budgetLines({ ...tree, now: Date.now(), width });
  },

  async requests(runtime: Runtime, rootAgentId: string): Promise<string[]> {
    const open = await allRequests(runtime.stores, { rootAgentId, status: "open" });
    if (open.length === 0) return ["Nothing waits for anybody."];
    return requestTable(await placedRequests(runtime.stores, open), Date.now(), false);
  },
} as const;
