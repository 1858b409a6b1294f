import type { AgentDefinition } from "../agents/index.ts";
import { collectDefinitions } from "../agents/index.ts";
import { assertId, type Clock, createId, systemClock } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { PriceBook } from "../model/index.ts";
import { type AgentRequest, DEFAULT_TENANT, type Message, messageSchema, turnIdOf } from "../state/index.ts";
import { memoryStores } from "../stores/index.ts";
import { AgentHandle } from "./agent-handle.ts";
import { DEFAULT_LEASE_MS, rootIdentity } from "./create-runtime.ts";
import type { Decide } from "./request-types.ts";
import { refuseBackground } from "./refuse-background.ts";
import { partOf } from "./roles.ts";
import { RuntimeCore } from "./runtime-core.ts";
import { TurnHandle } from "./turn-handle.ts";
import type { Turn, TurnOptions, TurnResult } from "./turn-types.ts";
import { unsavedTrees } from "./unsaved-trees.ts";
import { wakeUp } from "./wake-up.ts";

/** What one turn is run with (row L1); nothing of it is kept. */
export interface TurnContext extends Omit<TurnOptions, "ifBusy"> {
  /** Names the conversation in events and for tools. Default: a random UUID. */
  readonly agentId?: string | undefined;
  readonly clock?: Clock | undefined;
}

export interface LoopResult extends TurnResult {
  /** What the turn added to the conversation, the answer last. */
  readonly messages: readonly Message[];
}

/**
 * A turn of the stateless loop. It ends for good: there is nothing to come back to. One that waits (`settled` tells) goes on
 * when its requests are decided here.
 */
export interface LoopTurn extends Turn {
  readonly result: Promise<LoopResult>;
  decide(requestId: string, decide: Decide): Promise<AgentRequest>;
}

/** A message as the caller has it: what a turn gave back, or just a role and its content. */
export type LoopMessage = Pick<Message, "role" | "content"> & Partial<Message>;

export interface AgentLoop {
  /**
   * Runs one turn over a conversation that ends with what is to be answered. The loop keeps nothing: save
   * `(await turn.result).messages` where you like. Rejects with `InvalidInputError` for messages that are none.
   */
  executeTurn(messages: readonly LoopMessage[], context?: TurnContext): LoopTurn;
}

/**
 * The stateless loop: the same machines, budgets and hooks as a durable agent, on a journal that lives as long as the
 * turn, with no access to any store (row L1).
 */
export function createAgentLoop(definition: AgentDefinition): AgentLoop {
  const definitions = collectDefinitions([definition]);
  refuseBackground(definition, "the stateless loop");
  const priceBook = new PriceBook();
  return {
    executeTurn(messages, context = {}) {
      const { agentId = createId(), clock = systemClock, ...options } = context;
      const stores = unsavedTrees(memoryStores(), { clock, leaseMs: DEFAULT_LEASE_MS });
      const core = new RuntimeCore({
        agents: [definition],
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
        assertId("agentId", agentId);
        const history = completeMessages(messages, clock.now());
        await core.start();
        const firstTurnNumber = turnNumberAfter(history, agentId);
        const identity = { ...rootIdentity(core, definition, agentId), firstTurnNumber };
        const { record } = await stores.createAgent(identity, null);
        const live = await core.live.activate(core.keyOf(agentId));
        wakeUp(live, history);
        await live.committed();
        const agent = new AgentHandle(core, record);
        added = async () => (await agent.getMessages()).slice(history.length);
        return await agent.executeTurn(null, options).id;
      };
      return new EphemeralTurn(core, agentId, open(), () => added());
    },
  };
}

async function noMessages(): Promise<Message[]> {
  return [];
}

class EphemeralTurn extends TurnHandle implements LoopTurn {
  override readonly result: Promise<LoopResult>;
  readonly #core: RuntimeCore;

  constructor(core: RuntimeCore, agentId: string, accepted: Promise<string>, added: () => Promise<Message[]>) {
    super(core, agentId, accepted);
    const ended = accepted.then((turnId) => core.end(turnId));
    this.result = ended.then(async (result) => ({ ...result, messages: await added() }));
    this.#core = core;
    const shutdown = (): Promise<void> => core.shutdown();
    this.result.then(shutdown, shutdown).catch(() => undefined);
  }

  decide(requestId: string, decide: Decide): Promise<AgentRequest> {
    return this.#core.desk.decide(requestId, decide);
  }
}

function completeMessages(messages: readonly LoopMessage[], now: number): Message[] {
  const ids = new Set<string>();
  return messages.map((given, index) => {
    const message = completeMessage(given, index, now);
    if (!ids.has(message.id)) ids.add(message.id);
    else throw new InvalidInputError(`messages.${index}.id: "${message.id}" is the id of an earlier message`);
    return message;
  });
}

/** What a conversation holds of earlier turns carries their ids: the next turn must not give out the same ones. */
function turnNumberAfter(history: readonly Message[], agentId: string): number {
  const prefix = turnIdOf(agentId, 0).slice(0, -1);
  const numbers = history.map(({ id }) => (id.startsWith(prefix) ? Number.parseInt(id.slice(prefix.length), 10) : 0));
  return (
    numbers.reduce((highest, number) => (Number.isSafeInteger(number) ? Math.max(highest, number) : highest), 0) + 1
  );
}

function completeMessage(message: LoopMessage, index: number, now: number): Message {
  const whole = messageSchema.safeParse({ id: `given:${index}`, createdAt: now, origin: message.role, ...message });
  if (whole.success) return whole.data;
  const [issue] = whole.error.issues;
  const where = ["messages", index, ...(issue?.path ?? [])].join(".");
  throw new InvalidInputError(`${where}: ${issue?.message ?? "not a message"}; a message needs a role and its content`);
}
