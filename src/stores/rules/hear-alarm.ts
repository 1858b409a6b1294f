import { alarmOf } from "../../budget/index.ts";
import type { InboxItem } from "../../state/index.ts";
import { setLimitTimer } from "./account-timers.ts";
import { Ledger } from "./ledger.ts";
import type { Moment } from "./moment.ts";
import type { AccountAlarm, HeardAlarm, JobAlarm } from "./outcomes.ts";
import { hearJobAlarm } from "./queued-calls.ts";
import type { Tables } from "./tables.ts";

const nothing: HeardAlarm = Object.freeze({ posted: [], timers: [] });

/** Answers an alarm that needs no owner of its agent. */
export function hearAlarm(tables: Tables, timer: AccountAlarm | JobAlarm, moment: Moment): HeardAlarm {
  return timer.kind === "job" ? hearJobAlarm(tables, timer, moment) : hearAccount(tables, timer, moment);
}

/**
 * Answers an alarm of an account: room that was kept in vain goes to the next in line, and the warning of a limit on time is
 * posted to the account's agent. Heard again, or late, it changes nothing more.
 */
function hearAccount(tables: Tables, timer: AccountAlarm, moment: Moment): HeardAlarm {
  const { tenant, agentId, accountId } = timer;
  const record = tables.agent({ tenant, agentId });
  const account = tables.account(tenant, accountId);
  if (!record || !account) return nothing;
  const { rootAgentId, status, openTurnId } = record;
  const cause = { id: `${timer.id}:${timer.dueAt}`, key: { tenant, agentId }, rootAgentId };
  const ledger = new Ledger(tables, cause, moment);
  if (timer.kind === "claim") {
    ledger.endClaims(accountId);
    return ledger.flush();
  }
  const { limit } = timer;
  const alarm = alarmOf(account, limit);
  const time = limit === "maxActiveMs" ? moment.steady : moment.now;
  // It was put off, or has become that of the limit itself.
  if (!alarm || alarm.dueAt > time || alarm.dueAt === alarm.limitAt) return nothing;
  const isAtWork = status !== "shutdown" && (openTurnId !== null || account.activeCount > 0);
  if (!isAtWork) {
    // There is nobody to warn: whoever spends on it next does it.
    const { limitAt } = alarm;
    return { posted: [], timers: [setLimitTimer(tables, tenant, account, limit, { dueAt: limitAt, limitAt })] };
  }
  const posted = new Set<string>();
  for (const met of ledger.warnOf(accountId)) {
    const key = `budget.warning:${accountId}:${met.limit}`;
    const item: InboxItem = { kind: "budget.warning", key, at: moment.now, ...met };
    if (tables.addToInbox({ tenant, agentId }, item)) posted.add(agentId);
  }
  const { timers } = ledger.flush();
  return { posted: [...posted], timers };
}
