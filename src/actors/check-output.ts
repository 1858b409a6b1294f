import type { OutputSchema, ParsedOutput } from "../agents/index.ts";
import { type Message, naturalStopReason, stepMetadata, textOf, type TurnState } from "../state/index.ts";
import type { Host } from "./host.ts";
import { inTime, LONGEST_CHECK_MS } from "./in-time.ts";

/** How many times an answer that does not match its schema is requested again. */
const REPAIRS = 1;

/**
 * Validates a final answer against the definition's output schema, and journals the parsed value with transforms applied. An
 * invalid answer is requested once more, with its mistakes; then the turn fails.
 */
export async function checkOutput(host: Host, turnId: string, signal: AbortSignal): Promise<void> {
  const { output } = host.definition;
  const turn = host.turn(turnId);
  if (!output || !turn?.checksOutput || turn.outputFits !== null) return;
  const { stopSignals, isContinuationRequested } = turn.execution.continuation;
  if (stopSignals.length > 0 || isContinuationRequested) return;
  // A refusal is not an answer in a wrong form: it is not repaired, and ends the turn as a refusal.
  if (naturalStopReason(turn.execution) === "refusal") return;
  const { step } = turn;
  const messageId = `${turnId}:${step}`;
  const text = textOf(host.message(messageId)?.content ?? "");
  const checked = await parseOutput(host, output, { id: messageId, text }, signal);
  if (checked === undefined) return;
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
  const repair = repairMessage(host, { turnId, step, what: "Your answer", issues });
  host.append({ ...place, valid: false, issues, repairMessageId: repair.id }, { messages: [repair] });
}

/** Parses a text that is to be the output; `undefined` if the turn was stopped meanwhile. */
export async function parseOutput(
  host: Host,
  output: OutputSchema,
  { id, text }: { readonly id: string; readonly text: string },
  signal: AbortSignal,
): Promise<ParsedOutput | undefined> {
  await host.committed();
  if (signal.aborted) return undefined;
  const checked = await host.inFlight.run(`${id}:output`, signal, (callSignal) =>
    inTime(host, output.parse(text), { ms: LONGEST_CHECK_MS, signal: callSignal, late: lateCheck }),
  );
  return signal.aborted ? undefined : checked;
}

function lateCheck(): ParsedOutput {
  return { ok: false, issues: `its check took more than ${LONGEST_CHECK_MS} ms` };
}

/** The message contains the schema, because a server that ignores the response format has not shown it to the model. */
export function repairMessage(
  host: Host,
  {
    turnId,
    step,
    what,
    issues,
  }: Pick<TurnState, "turnId" | "step"> & { readonly what: string; readonly issues: string },
): Message {
  const schema = JSON.stringify(host.definition.output?.sentSchema);
  return {
    id: `${turnId}:${step}:repair`,
    role: "user",
    createdAt: host.clock.now(),
    content: `${what} does not fit the required output: ${issues}. Answer again with nothing but JSON that fits this JSON Schema: ${schema}`,
    origin: "runtime",
    metadata: stepMetadata(host.identity.agentId, { turnId, step, isTrace: true }),
  };
}
