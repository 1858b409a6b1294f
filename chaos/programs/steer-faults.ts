import type { AgentEvidence } from "../../src/testing/simulation/evidence.ts";
import { type Ended, entriesOf, linesOf } from "./evidence-lines.ts";

/**
 * Each further input is taken in once, by its key; its answer is true in every process; and the model calls from its step on show it, in
 * the order in which inputs arrived.
 */
export function steerFaults({ tree, lines }: Ended): string[] {
  const [root] = tree.agents;
  if (!root) return [];
  const taken = Map.groupBy(entriesOf(root, "turn.steered"), ({ inputKey }) => inputKey?.text ?? "");
  const faults = [...taken].flatMap(([key, entries]) =>
    entries.length === 1 ? [] : [`the input ${key} was taken in ${entries.length} times`],
  );
  const begun = new Set(entriesOf(root, "turn.started").map(({ turnId }) => turnId));
  for (const { key, turnId, step } of linesOf(lines, "steered")) {
    const found = taken.get(key)?.[0];
    const where = `the input ${key} was answered with ${turnId}, step ${step}`;
    if (step !== null && (found?.turnId !== turnId || found.step !== step))
      faults.push(`${where}; it is at ${found?.turnId}, step ${found?.step}`);
    if (step === null && found) faults.push(`${where}; it is also an input of ${found.turnId}`);
    if (step === null && !begun.has(turnId)) faults.push(`${where}; no such turn has begun`);
  }
  return [...faults, ...unseenFaults(root, lines)];
}

function unseenFaults(root: AgentEvidence, lines: Ended["lines"]): string[] {
  const inputs = entriesOf(root, "turn.steered");
  const grants = entriesOf(root, "model.requested");
  return linesOf(lines, "asked").flatMap(({ turnId, step, ids, promptHash }) => {
    const grant = grants.findLast(
      (entry) => entry.turnId === turnId && entry.step === step && entry.promptHash === promptHash,
    );
    if (!grant) return [];
    const due = inputs.flatMap((entry) =>
      entry.turnId === turnId && entry.step <= step && entry.seq < grant.seq ? [entry.messageId] : [],
    );
    const shown = ids.filter((id) => inputs.some((entry) => entry.turnId === turnId && entry.messageId === id));
    const where = `${turnId}:${step}`;
    const missing = due.filter((id) => !shown.includes(id));
    const order = inputs.flatMap(({ messageId }) => (shown.includes(messageId) ? [messageId] : []));
    return [
      ...(missing.length > 0 ? [`${where}: its prompt lacks the inputs ${missing.join()}`] : []),
      ...(order.join() === shown.join()
        ? []
        : [`${where}: its prompt shows the inputs ${shown.join()}; they arrived as ${order.join()}`]),
    ];
  });
}
