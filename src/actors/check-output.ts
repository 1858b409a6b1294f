import { type Json, type Message, stepMetadata, textOf } from "../state/index.ts";
import type { Host } from "./host.ts";

/** How often an answer that does not fit its schema is asked for again. */
const REPAIRS = 1;

/**
 * Checks a final answer against the definition's output schema, and journals the parsed value, with transforms applied. An
 * answer that does not fit is asked for once more, with the mistakes; then the turn fails.
 */
export async function checkOutput(host: Host, turnId: string, signal: AbortSignal): Promise<void> {
  const { output } = host.definition;
  const turn = host.turn(turnId);
  if (!output || !turn?.checksOutput || turn.outputFits !== null) return;
  const { stopSignals, isContinuationRequested } = turn.execution.continuation;
  if (stopSignals.length > 0 || isContinuationRequested) return;
  const { step } = turn;
  const messageId = `${turnId}:${step}`;
  const text = textOf(host.message(messageId)?.content ?? "");
  await host.committed();
  if (signal.aborted) return;
  const checked = await host.inFlight.run(`${messageId}:output`, signal, () => output.parse(text));
  if (signal.aborted) return;
  const place = { type: "output.checked", turnId, step, messageId } as const;
  if (checked.ok) {
    host.append({ ...place, valid: true, value: checked.value });
    return;
  }
  const { issues } = checked;
  if (turn.outputRepairs >= REPAIRS) {
    host.append({ ...place, valid: false, issues });
    return;
  }
  const repair = repairMessage(host, turnId, step, issues);
  host.append({ ...place, valid: false, issues, repairMessageId: repair.id }, { messages: [repair] });
}

function repairMessage(host: Host, turnId: string, step: number, issues: string): Message {
  return {
    id: `${turnId}:${step}:repair`,
    role: "user",
    createdAt: host.clock.now(),
    content: `Your answer does not fit the required output: ${issues}. Answer again with nothing but JSON that fits.`,
    origin: "runtime",
    metadata: stepMetadata(host.identity.agentId, { turnId, step, isTrace: true }),
  };
}

/** The output of a turn whose answer was checked and fits. */
export function outputOf(entries: readonly { readonly type: string }[]): Json | undefined {
  const checked = entries.findLast(isValidOutput);
  return checked?.value;
}

function isValidOutput(entry: {
  readonly type: string;
}): entry is { readonly type: "output.checked"; readonly valid: true; readonly value: Json } {
  return entry.type === "output.checked" && "valid" in entry && entry.valid === true;
}
