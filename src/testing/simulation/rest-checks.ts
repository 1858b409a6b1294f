import type { TreeEvidence } from "./evidence.ts";

/** Invariants of a finished tree: every turn has ended, nothing is reserved, and nothing is left over. */
export function restViolations({ agents, accounts, cursors }: TreeEvidence): string[] {
  const violations: string[] = [];
  for (const { agentId, record, entries, inbox } of agents) {
    const started = entries.filter((entry) => entry.type === "turn.started").length;
    const ended = entries.filter((entry) => entry.type === "turn.ended").length;
    if (record.openTurnId !== null || started !== ended) violations.push(`${agentId}: its turn has not ended`);
    if (record.queuedTurnIds.length > 0) violations.push(`${agentId}: turns are still queued`);
    if (record.turnCount !== ended)
      violations.push(`${agentId}: ${ended} turns ended, but its record counts ${record.turnCount}`);
    if (inbox.length > 0) violations.push(`${agentId}: ${inbox.map(({ key }) => key).join(", ")} left in its inbox`);
    const fails = entries.filter((entry) => entry.type === "effect.failed");
    for (const { error } of fails) violations.push(`${agentId}: an effect failed: ${error.code}: ${error.message}`);
  }
  for (const { id, reserved, activeCount, used, limits } of accounts) {
    if (reserved.tokens > 0 || reserved.costMicros > 0)
      violations.push(`account ${id}: ${reserved.tokens} still reserved`);
    if (activeCount !== 0) violations.push(`account ${id}: counts ${activeCount} at work`);
    if (limits.maxTokens !== undefined && used.tokens > limits.maxTokens)
      violations.push(`account ${id}: over its limit`);
  }
  for (const [index, cursor] of cursors.entries()) {
    if (cursor <= (cursors[index - 1] ?? 0)) violations.push(`cursor ${cursor} comes after ${cursors[index - 1]}`);
  }
  return violations;
}

/** Counted amounts exceed no limit of an account. */
export function limitViolations({ accounts }: Pick<TreeEvidence, "accounts">): string[] {
  return accounts.flatMap(({ id, used, limits }) => {
    const counted = [
      ["steps", used.steps, limits.maxSteps],
      ["tree steps", used.treeSteps, limits.maxTreeSteps],
      ["tool calls", used.toolCalls, limits.maxToolCalls],
      ["tree tool calls", used.treeToolCalls, limits.maxTreeToolCalls],
    ] as const;
    return counted.flatMap(([name, amount, limit]) =>
      limit !== undefined && amount > limit ? [`account ${id} used ${amount} of ${limit} ${name}`] : [],
    );
  });
}
