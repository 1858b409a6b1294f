import { limitsOf } from "../../budget/index.ts";
import { AgentBusyError, AgentNotStartedError, NotFoundError } from "../../errors/index.ts";
import type { AgentRecord, Content, Lifecycle } from "../../state/index.ts";
import { abortWithSignal, type HeardSignal, hearSignal } from "./abort-with-signal.ts";
import type { AgentPresence } from "./agent-presence.ts";
import { busyText, notStartedText } from "./agent-status.ts";
import type { RuntimeCore } from "../core/runtime-core.ts";
import { inputOf, traceOfTurn, turnOptionsOf } from "../doors/turn-door.ts";
import type { TurnOptions } from "../doors/turn-types.ts";

/** How a turn is asked for. */
export interface TurnAsked {
  readonly input: Content | null;
  readonly options?: TurnOptions | undefined;
  /** It is the agent's first turn, or none. */
  readonly isFirst?: boolean | undefined;
  /** Messages of the conversation that are its input, where it brings none of its own. */
  readonly inputMessageIds?: readonly string[] | undefined;
}

/** A turn that was accepted. */
export interface OpenedTurn {
  readonly turnId: string;
  /** As it is stored now, where the agent does not live here. */
  readonly record?: AgentRecord | undefined;
}

export interface OpeningPlace {
  readonly core: RuntimeCore;
  readonly presence: AgentPresence;
  readonly status: () => Lifecycle;
}

/**
 * Opens a turn; everything that was given is checked before anything is stored. Rejects with `InvalidInputError`,
 * `AgentBusyError`, `AgentNotStartedError` and `NotFoundError`.
 */
export async function openTurn(place: OpeningPlace, asked: TurnAsked): Promise<OpenedTurn> {
  const input = inputOf(asked.input);
  const options = turnOptionsOf(asked.options);
  const heard = options.signal && hearSignal(options.signal);
  try {
    return await accept(place, { ...asked, input, options }, heard);
  } catch (error) {
    heard?.letGo();
    throw error;
  }
}

type CheckedTurn = TurnAsked & { readonly options: TurnOptions };

async function accept(place: OpeningPlace, turn: CheckedTurn, heard: HeardSignal | undefined): Promise<OpenedTurn> {
  const { core, presence } = place;
  const { key } = presence;
  const { input, options, isFirst, inputMessageIds } = turn;
  const { auth, budget, ifBusy = "refuse" } = options;
  const trace = traceOfTurn(options);
  const limits = budget === undefined ? null : limitsOf(budget, core.clock.now());
  core.assertOpen();
  if (presence.live?.lifecycle === "created" || core.live.isShutDown(key)) throw notStarted(place);
  const actorId = auth?.actorId ?? null;
  const command = { input, actorId, limits, ifBusy, trace, isFirst, inputMessageIds } as const;
  const outcome = await core.stores.openTurn(key, command, core.clock.now());
  if (outcome.type === "notFound") throw new NotFoundError(`there is no agent "${key.agentId}"`);
  if (outcome.type === "refused") throw notStarted(place);
  if (outcome.type === "given") return { turnId: outcome.turnId };
  if (outcome.type === "busy") {
    const { openTurnId } = outcome;
    throw new AgentBusyError(busyText(key.agentId, openTurnId), { details: { openTurnId } });
  }
  // Where nobody runs turns nobody would use them.
  if (auth && presence.runsHere) core.auth.keep(outcome.turnId, auth);
  if (heard) await abortWithSignal(core, outcome.turnId, heard);
  const owner = presence.live ?? (await presence.own());
  if (owner && outcome.type === "opened") core.live.take(owner, outcome.item);
  else if (owner) await core.live.drainInbox(owner);
  presence.tell(outcome.posted, owner);
  return { turnId: outcome.turnId, record: owner ? undefined : outcome.record };
}

function notStarted({ presence, status }: OpeningPlace): AgentNotStartedError {
  return new AgentNotStartedError(notStartedText(presence.key.agentId, status()));
}
