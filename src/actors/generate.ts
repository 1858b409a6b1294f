import { faultPoint } from "../base/index.ts";
import { AgentStopError, InvalidInputError } from "../errors/index.ts";
import type { EntryOf, Message, ModelRequest, ModelResponse, TurnState } from "../state/index.ts";
import type { GenerateInput } from "../tools/index.ts";
import { assertPriced, costOf, reservationAskOf, settlementOf, unconfirmedSettlement } from "./ask.ts";
import { storedErrorOf } from "./effect.ts";
import type { Host } from "./host.ts";
import { promptHashOf } from "./prompt.ts";

/**
 * Model calls of user code (hooks, tools), numbered within their run. Each is reserved and journalled; when the run is
 * repeated, a call with the same number and the same prompt gets the journalled answer (design, The journal).
 */
export function generateFor(owner: Host, turnId: string, step: number, run: string, signal: AbortSignal) {
  let count = 0;
  return async (input: GenerateInput): Promise<ModelResponse> => {
    const index = count;
    count += 1;
    const host = await owner.live();
    const { model } = host.definition;
    if (input.model !== undefined && input.model !== model.name) {
      throw new InvalidInputError(`generate() was asked for model "${input.model}"; this agent has "${model.name}"`);
    }
    const turn = host.turn(turnId);
    if (!turn) throw new AgentStopError("the turn is over");
    const request = requestOf(input, `${turnId}:${run}:${index}`);
    const promptHash = promptHashOf(request.messages);
    const known = host
      .memory(turnId)
      .entries.find(
        (entry): entry is EntryOf<"generate.responded"> =>
          entry.type === "generate.responded" &&
          entry.run === run &&
          entry.index === index &&
          entry.promptHash === promptHash,
      );
    if (known) return known.response;
    settleAbandoned(host, turn, step, run, index);
    return await call(host, turn, { turnId, step, run, index, promptHash, request, signal });
  };
}

interface SideCall {
  readonly turnId: string;
  readonly step: number;
  readonly run: string;
  readonly index: number;
  readonly promptHash: string;
  readonly request: ModelRequest;
  readonly signal: AbortSignal;
}

async function call(host: Host, turn: TurnState, side: SideCall): Promise<ModelResponse> {
  const { turnId, step, run, index, promptHash, request, signal } = side;
  const { model, price } = host.definition;
  assertPriced(host, turn.limits.maxCostMicros !== undefined);
  const ask = await reservationAskOf(host, turn.accountId, model, request, false);
  const place = { turnId, step, run, index };
  const outcome = await host.propose({
    type: "generate.requested",
    ...place,
    model: model.name,
    promptHash,
    ask,
    reservation: null,
  });
  const reservation = outcome.granted ? outcome.entry.reservation : null;
  if (!reservation) throw new AgentStopError(`generate() was refused: ${outcome.granted ? "" : outcome.entry.reason}`);
  faultPoint("generate.intent");
  try {
    const response = await model.generate({ ...request, maxOutputTokens: reservation.outputTokens }, { signal });
    faultPoint("generate.effect");
    const settlement = settlementOf(reservation, response.usage, price);
    const costMicros = costOf(response.usage, price);
    host.append(
      { type: "generate.responded", ...place, promptHash, response, costMicros, settlement },
      { moves: [{ type: "settle", settlement }] },
    );
    faultPoint("generate.result");
    return response;
  } catch (error) {
    const settlement = unconfirmedSettlement(reservation);
    host.append(
      { type: "generate.failed", ...place, error: storedErrorOf(error), usage: null, settlement },
      { moves: [{ type: "settle", settlement }] },
    );
    throw error;
  }
}

/** A side call that was in flight when its process died: settled in full before it is made anew. */
function settleAbandoned(host: Host, turn: TurnState, step: number, run: string, index: number): void {
  const open = turn.openGenerates.find((one) => one.run === run && one.index === index);
  if (!open || open.epoch >= host.epoch) return;
  const settlement = unconfirmedSettlement(open.reservation);
  const error = { code: "interrupted", message: "the process ended while the call was in flight", retryable: true };
  host.append(
    { type: "generate.failed", turnId: turn.turnId, step, run, index, error, usage: null, settlement },
    { moves: [{ type: "settle", settlement }] },
  );
}

function requestOf(input: GenerateInput, prefix: string): ModelRequest {
  const messages: Message[] = input.messages.map(({ role, content }, index) => ({
    id: `${prefix}:${index}`,
    role,
    content,
    createdAt: 0,
    origin: "runtime",
  }));
  return { messages, ...(input.maxOutputTokens === undefined ? {} : { maxOutputTokens: input.maxOutputTokens }) };
}
