import type { EntryOf, Message } from "../state/index.ts";
import type { ChildEnd, Host } from "./host.ts";

/** Id of the message that tells a parent of the end of this turn of its child. */
export function reportIdOf(childTurnId: string): string {
  return `${childTurnId}:report`;
}

/** The report of a child's end, as the parent's history keeps it. */
export function reportMessage(host: Host, report: EntryOf<"child.reported">, step: number): Message {
  const { turnId, name, childId, messageId } = report;
  const place = turnId === undefined ? {} : { step_id: `${turnId}:${step}`, execution_id: turnId };
  return {
    id: messageId,
    role: "user",
    content: `The subagent "${name}" (${childId}), which you had started in the background, ${endText(report)}`,
    createdAt: host.clock.now(),
    origin: `subagent:${name}`,
    metadata: { ...place, agent_id: host.identity.agentId, is_trace: true },
  };
}

/** How a child ended, as the rest of a sentence about it. */
export function endText({ outcome, stopReason, text }: ChildEnd): string {
  if (outcome === "completed") return `has ended. Its answer:\n\n${text}`;
  if (outcome === "stopped") return `was stopped (${stopReason}) before it had finished. What it has:\n\n${text}`;
  return `has failed: ${text}`;
}
