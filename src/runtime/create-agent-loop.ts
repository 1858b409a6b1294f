import { type AgentDefinition, collectDefinitions } from "../agents/index.ts";
import {
  anyRule,
  type Clock,
  clockRule,
  createId,
  type OptionsSchema,
  idRule,
  listRule,
  type OptionRule,
  optionsOf,
  reading,
  systemClock,
} from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { PriceBook } from "../model/index.ts";
import { type AgentRequest, DEFAULT_TENANT, type Message, messageSchema, taken, turnIdOf } from "../state/index.ts";
import { memoryStores } from "../stores/index.ts";
import { AgentHandle } from "./handles/agent-handle.ts";
import { checkedPorts } from "./core/checked-ports.ts";
import { rootIdentity } from "./core/root-agents.ts";
import { DEFAULT_LEASE_MS, refuseBackground } from "./create-runtime.ts";
import type { Decide } from "./api/agent-types.ts";
import { partOf } from "./api/roles.ts";
import { RuntimeCore } from "./core/runtime-core.ts";
import { definitionsRule } from "./api/runtime-options.ts";
import { INPUT_CHARACTERS, turnOptions } from "./api/turn-options.ts";
import { TurnHandle } from "./follow/turn-handle.ts";
import type { Turn, TurnOptions, TurnResult } from "./api/turn-types.ts";
import { unsavedStores } from "./unsaved/unsaved-stores.ts";
import { wakeUp } from "./agent/intake.ts";

/** The options of one turn; the loop does not keep them. */
export interface TurnContext extends Omit<TurnOptions, "ifBusy" | "key" | "clientTools"> {
  /** Names the conversation in events and for tools. Default: a random UUID. */
  readonly agentId?: string | undefined;
  /** The clock of this turn. Default: the system clock. */
  readonly clock?: Clock | undefined;
}

/** The outcome of a turn of the stateless loop. */
export interface LoopResult<Output = unknown> extends TurnResult<Output> {
  /** Messages that the turn added to the conversation; the answer is the last one. */
  readonly messages: readonly Message[];
}

/**
 * A turn of the stateless loop. After its end it cannot be opened again. If it waits (see `settled`), it continues when its
 * requests are decided with `decide`.
 */
export interface LoopTurn<Output = unknown> extends Turn<Output> {
  /** Resolves when the turn has ended, with the messages that it added. */
  readonly result: Promise<LoopResult<Output>>;
  /** Decides a request of the turn; rejects like `runtime.decide`. */
  decide(requestId: string, decide: Decide): Promise<AgentRequest>;
}

/** A message from the caller: one that a turn returned, or only a role and its content. */
export type LoopMessage = Pick<Message, "role" | "content"> & Partial<Message>;

/** The stateless loop over one definition. */
export interface AgentLoop<Output = unknown> {
  /**
   * Runs one turn over a conversation that ends with the messages to answer: the user's messages at its end are the turn's
   * prompt. The loop stores nothing: save `(await turn.result).messages` yourself. Rejects with `InvalidInputError` for invalid
   * messages or options.
   */
  executeTurn(messages: readonly LoopMessage[], context?: TurnContext): LoopTurn<Output>;
}

export interface AgentLoopOptions {
  /** Further definitions that code spawns; subagents among the tools are known without it. Default: none. */
  readonly agents?: readonly AgentDefinition[] | undefined;
}

/**
 * The stateless loop: the same machines, budgets and hooks as a durable agent, on an in-memory journal that exists only during
 * the turn, without access to any store. Throws `InvalidInputError` for an invalid definition.
 */
export function createAgentLoop<Output>(
  definition: AgentDefinition<Output>,
  options?: AgentLoopOptions,
): AgentLoop<Output> {
  const [main] = definitionsRule([definition], "createAgentLoop()") as readonly [AgentDefinition];
  const { agents = [] } = optionsOf<AgentLoopOptions>(options, "createAgentLoop()", loopOptionsSchema);
  const known = [main, ...agents];
  const definitions = collectDefinitions(known);
  for (const one of known) refuseBackground(one, "the stateless loop");
  const priceBook = new PriceBook();
  return {
    executeTurn(messages, context) {
      const { agentId = createId(), clock, refusal, ...turnOptions } = contextOf(context);
      const stores = unsavedStores(memoryStores(), { clock, leaseMs: DEFAULT_LEASE_MS });
      const core = new RuntimeCore({
        stores,
        tenant: DEFAULT_TENANT,
        clock,
        leaseMs: DEFAULT_LEASE_MS,
        definitions,
        part: partOf({ clock, definitions }),
        priceBook,
      });
      let added = noMessages;
      const open = async (): Promise<string> => {
        if (refusal) throw refusal;
        const history = completeMessages(messages, clock.now());
        await core.start();
        const firstTurnNumber = turnNumberAfter(history, agentId);
        const identity = { ...rootIdentity(core, main, agentId), firstTurnNumber };
        const { record } = await stores.createAgent(identity, null, { definition: definition.stored });
        const live = await core.live.own(core.keyOf(agentId));
        wakeUp(live, history);
        await live.committed();
        const agent = new AgentHandle(core, record);
        added = async () => (await agent.getMessages()).slice(history.length);
        return await agent.execute({ input: null, options: turnOptions, inputMessageIds: promptIdsOf(history) }).id;
      };
      return new EphemeralTurn(core, agentId, open(), () => added()) as LoopTurn<Output>;
    },
  };
}

const loopOptionsSchema: OptionsSchema<AgentLoopOptions> = { rules: { agents: definitionsRule } };

const { ifBusy: _noOther, key: _noneKnown, clientTools: _own, ...turnRules } = turnOptions.rules;

const contextOptionsSchema: OptionsSchema<TurnContext> = {
  ...turnOptions,
  rules: { ...turnRules, agentId: idRule, clock: clockRule },
};

/** Invalid options reject the turn, like all other refused input. */
function contextOf(
  context: TurnContext | undefined,
): TurnContext & { readonly clock: Clock; readonly refusal?: Error } {
  try {
    const options = optionsOf<TurnContext>(context, "executeTurn()", contextOptionsSchema);
    return { ...options, ...checkedPorts(options) };
  } catch (error) {
    if (error instanceof InvalidInputError) return { clock: systemClock, refusal: error };
    throw error;
  }
}

/** Ids of the user's messages after the last message with another role. */
function promptIdsOf(history: readonly Message[]): string[] {
  const last = history.findLastIndex(({ role }) => role !== "user");
  return history.slice(last + 1).map(({ id }) => id);
}

async function noMessages(): Promise<Message[]> {
  return [];
}

class EphemeralTurn extends TurnHandle implements LoopTurn {
  readonly #looped: Promise<LoopResult>;
  readonly #core: RuntimeCore;

  constructor(core: RuntimeCore, agentId: string, accepted: Promise<string>, added: () => Promise<Message[]>) {
    super(
      core,
      agentId,
      accepted.then((turnId) => ({ turnId, isReplayed: false })),
    );
    const ended = accepted.then((turnId) => core.end(turnId));
    this.#looped = ended.then(async (result) => ({ ...result, messages: await added() }));
    this.#core = core;
    const shutdown = (): Promise<unknown> => core.shutdown();
    this.#looped.then(shutdown, shutdown).catch(() => undefined);
  }

  override get result(): Promise<LoopResult> {
    this.#core.waiting.until(this.#looped);
    return this.#looped;
  }

  protected override get ended(): Promise<LoopResult> {
    return this.#looped;
  }

  decide(requestId: string, decide: Decide): Promise<AgentRequest> {
    return this.#core.requests.decide(requestId, decide);
  }
}

function completeMessages(messages: readonly LoopMessage[], now: number): Message[] {
  const given = messagesRule(messages, "executeTurn(): messages") as readonly LoopMessage[];
  const ids = new Set<string>();
  return given.map((one, index) => {
    const message = completeMessage(one, index, now);
    if (!ids.has(message.id)) ids.add(message.id);
    else throw new InvalidInputError(`messages.${index}.id: "${message.id}" is already the id of an earlier message`);
    return message;
  });
}

const messagesRule: OptionRule = (value, where) =>
  reading(where, () => listRule("a list of messages, each with a role and its content", anyRule)(value, where));

/** The first free turn number: messages of earlier turns contain turn ids, which must not be reused. */
function turnNumberAfter(history: readonly Message[], agentId: string): number {
  const prefix = turnIdOf(agentId, 0).slice(0, -1);
  const numbers = history.map(({ id }) => (id.startsWith(prefix) ? Number.parseInt(id.slice(prefix.length), 10) : 0));
  return (
    numbers.reduce((highest, number) => (Number.isSafeInteger(number) ? Math.max(highest, number) : highest), 0) + 1
  );
}

function completeMessage(given: LoopMessage, index: number, now: number): Message {
  const whole = reading(`messages.${index}`, () => ({
    id: `given:${index}`,
    createdAt: now,
    origin: given?.role,
    ...given,
  }));
  const message = taken(messageSchema, whole, { maxSize: INPUT_CHARACTERS });
  if (message.ok) return message.value as Message;
  throw new InvalidInputError(`messages.${index}.${message.problem}; a message needs a role and its content`);
}
