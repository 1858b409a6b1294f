import { endingCallOf, type Message, stepMetadata, textOf, type TurnState } from "../state/index.ts";
import { parseOutput, repairMessage } from "./check-output.ts";
import { guardedToolAnswer } from "./guards.ts";
import type { Host } from "./host.ts";

/**
 * Makes the answer of a turn that a tool ends from the result of its call. The result passes the guards of outputs and must fit the output
 * schema, as an answer of the model would. The round ends with `output.checked`: valid if the result is the answer; otherwise the model
 * continues, and gets a message if the result does not fit.
 */
export async function answerWithResult(host: Host, turnId: string, signal: AbortSignal): Promise<void> {
  const turn = host.turn(turnId);
  const [first] = turn?.endingCallIds ?? [];
  if (!turn || first === undefined) return;
  const { step } = turn;
  const callId = endingCallOf(turn);
  const place = { type: "output.checked", turnId, step, callId: callId ?? first } as const;
  if (callId === undefined) {
    host.append({ ...place, messageId: first, valid: false, issues: "the turn goes on for another reason" });
    return;
  }
  const result = textOf(host.message(callId)?.content ?? "");
  const { text, blocked } = await guardedToolAnswer(host, { turnId, step, callId }, result, signal);
  const answer = answerMessage(host, turn, text);
  const valid = { ...place, messageId: answer.id, valid: true } as const;
  if (blocked) {
    // Before the answer, as for a blocked answer of the model.
    host.append({ type: "stop.signalled", turnId, signal: blocked });
    host.append(valid, { messages: [answer] });
    return;
  }
  const { output } = host.definition;
  if (!output || !turn.checksOutput) {
    host.append(valid, { messages: [answer] });
    return;
  }
  const checked = await parseOutput(host, output, { id: callId, text }, signal);
  if (checked === undefined) return;
  if (checked.ok) {
    host.append({ ...valid, value: checked.value }, { messages: [answer] });
    return;
  }
  const { issues } = checked;
  const repair = repairMessage(host, { turnId, step, what: "The result that was to be the answer", issues });
  host.append(
    { ...place, messageId: callId, valid: false, issues, repairMessageId: repair.id },
    { messages: [repair] },
  );
}

/** The result as an answer of the agent, so that the conversation goes on from it like from any other. */
function answerMessage(host: Host, { turnId, step }: Pick<TurnState, "turnId" | "step">, content: string): Message {
  return {
    id: `${turnId}:${step}:answer`,
    role: "assistant",
    createdAt: host.clock.now(),
    content,
    origin: "tool",
    metadata: stepMetadata(host.identity.agentId, { turnId, step, isTrace: false }),
  };
}
