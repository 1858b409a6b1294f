import type { Runtime } from "../../runtime/index.ts";
import { DEFAULT_TENANT } from "../../state/index.ts";
import { readStory } from "../job/story.ts";
import { allRequests, placedRequests } from "../requests/all-requests.ts";
import { requestTable } from "../view/request-lines.ts";
import { accountLines } from "../view/story-lines.ts";
import { summaryLines } from "../view/summary.ts";

/** What the commands of a chat show of its tree, as it is stored now. */
export const chatReports = {
  async tree(runtime: Runtime, rootAgentId: string): Promise<string[]> {
    const { agents, accounts } = await readStory(runtime.stores, rootAgentId);
    return summaryLines(agents, { accounts, now: Date.now() });
  },

  async budget(runtime: Runtime, rootAgentId: string): Promise<string[]> {
    return accountLines(await runtime.stores.accounts(DEFAULT_TENANT, rootAgentId), Date.now());
  },

  async requests(runtime: Runtime, rootAgentId: string): Promise<string[]> {
    const open = await allRequests(runtime.stores, { rootAgentId, status: "open" });
    if (open.length === 0) return ["Nothing waits for anybody."];
    return requestTable(await placedRequests(runtime.stores, open), Date.now(), false);
  },
} as const;
