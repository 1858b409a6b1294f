import { scopeOf } from "../run-model/account-at.ts";
import { shortId } from "./format.ts";
import type { RunSession } from "./run-session.ts";
import { oneLine } from "./untrusted.tsx";

/** The agent of an account and what the account pays for: `reader ~3fa2c1, turn 1`. */
export function accountWords(run: RunSession, accountId: string): string {
  const account = run.moments.at(run.length.value).accounts.account(accountId);
  if (!account) return oneLine(accountId, 40);
  return `${agentWords(run, account.agentId)}, ${scopeOf(account)}`;
}

/** The name of an agent; for a subagent with its short id, which distinguishes siblings. */
export function agentWords({ log }: RunSession, agentId: string): string {
  const agent = log.agents[log.indexOfAgent(agentId)];
  const name = oneLine(agent?.name ?? "", 40);
  return agent && agent.parent >= 0 ? `${name} ${shortId(agentId)}` : name;
}
