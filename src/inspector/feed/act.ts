import { type AgentDefinition, collectDefinitions } from "../../agents/index.ts";
import { systemClock } from "../../base/index.ts";
import { NotFoundError, UnsupportedError } from "../../errors/index.ts";
import {
  type Decide,
  deleteAgent,
  Requests,
  type Runtime,
  type RuntimeOptions,
  storedDeletions,
} from "../../runtime/index.ts";
import type { AgentRequest, Content, DefinitionRef } from "../../state/index.ts";
import type { MarkOutcome, Stores } from "../../stores/index.ts";
import type { AgentBody, DecisionBody, TurnAnswer, TurnBody } from "./answers.ts";
import { type Forks, forksIn } from "./fork-acts.ts";

/** The actions on agents that the page offers a person. */
export interface Actor {
  /** Decides a request. Rejects with `RequestConflictError` if the request is already decided. */
  decide(requestId: string, body: DecisionBody): Promise<AgentRequest>;
  /** Pauses the agent and its subtree. */
  pause(agentId: string): Promise<void>;
  /** Ends a pause. */
  resume(agentId: string): Promise<void>;
  /** Ends the agent's open turn for a reason. */
  abort(agentId: string, reason: string): Promise<void>;
  /** Deletes a root agent with its subagents for good; an open turn is aborted first. */
  delete(agentId: string): Promise<void>;
  /** Talks to agents. Absent if the page cannot start turns here. */
  readonly talk?: Talk | undefined;
  /** Forks and replays runs. Absent if the page cannot run agents here. */
  readonly forks?: Forks | undefined;
}

/** How a reader of the inspector's page talks to agents. */
export interface Talk {
  /** Names of the definitions from which agents can be created. */
  readonly definitions: readonly string[];
  /** Creates an agent from a definition. */
  createAgent(body: AgentBody): Promise<{ readonly agentId: string; readonly definition: DefinitionRef }>;
  /** Starts a turn and resolves with its id, without waiting for its result. */
  startTurn(agentId: string, body: TurnBody): Promise<TurnAnswer>;
}

/** How long `pause` waits for the agent to stop working, in milliseconds. */
const PAUSE_MS = 300;

/** Acts through a runtime of this process, in the name of `by`. */
export function runtimeActor(runtime: Runtime, by: string): Actor {
  return {
    decide: (requestId, body) => runtime.decide(requestId, decideOf(body, by)),
    async pause(agentId) {
      const agent = await runtime.find(agentId);
      const paused = agent.pause();
      paused.catch(() => undefined);
      // The store is marked quickly. The agent itself pauses only after its call in flight; the journal then shows it.
      await Promise.race([paused, systemClock.sleep(PAUSE_MS)]);
    },
    resume: async (agentId) => {
      const agent = await runtime.find(agentId);
      await agent.resume();
    },
    abort: async (agentId, reason) => {
      const agent = await runtime.find(agentId);
      await agent.abort(reason);
    },
    delete: async (agentId) => {
      await runtime.delete(agentId, { abort: true, by });
    },
    ...(runtime.role === "worker" ? {} : { talk: talkTo(runtime), forks: forksIn(runtime) }),
  };
}

function talkTo(runtime: Runtime): Talk {
  return {
    definitions: [...runtime.definitions.keys()],
    async createAgent({ definition, agentId }) {
      const agent = await runtime.agent(definition, { agentId });
      const { name, version: hash } = agent.definition;
      return { agentId: agent.agentId, definition: { name, hash } };
    },
    async startTurn(agentId, { key, text, images = [], ifBusy }) {
      const agent = await runtime.find(agentId);
      if (agent.rootAgentId !== agentId) throw new UnsupportedError("turns can only be started on root agents");
      await agent.start();
      const content = inputContent(text, images);
      if (ifBusy !== "steer") return { turnId: await agent.executeTurn(content, { key, ifBusy }).id };
      const { turnId, ...answer } = await agent.steer(content, { key });
      return { turnId, ...(answer.status === "delivered" ? { step: answer.step } : {}) };
    },
  };
}

function inputContent(text: string, images: readonly string[]): Content {
  if (images.length === 0) return text;
  return [...(text === "" ? [] : [{ type: "text" as const, text }]), ...images.map(imageOf)];
}

function imageOf(url: string) {
  return { type: "image" as const, url };
}

function decideOf({ verdict, argumentsHash, reason, arguments: edited, result, isError }: DecisionBody, by: string) {
  const decide: Decide = { verdict, by, reason, argumentsHash, arguments: edited, result, isError };
  return decide;
}

/** What `storeActor()` takes. */
export interface StoreActorOptions {
  /** The stores of the agents. */
  readonly stores: Stores;
  /** The tenant of the agents. */
  readonly tenant: string;
  /** Name recorded as the decider. */
  readonly by: string;
  /**
   * Definitions whose schemas check edited arguments. Default: none; edited arguments are then checked when the call runs.
   */
  readonly definitions?: readonly AgentDefinition[] | undefined;
  /** The `mayDecide` rule of the program that runs the agents. Default: every caller may decide. */
  readonly mayDecide?: RuntimeOptions["mayDecide"];
  /** Called with the ids of agents that may need a process to wake them after a change. Default: does nothing. */
  readonly notify?: ((agentIds: readonly string[]) => void) | undefined;
}

/**
 * Acts through the stores, for agents that another process runs or none does. The agents read the change from the stores.
 */
export function storeActor(options: StoreActorOptions): Actor {
  const { stores, tenant, by, definitions = [], mayDecide, notify = () => undefined } = options;
  const known = collectDefinitions(definitions);
  const requests = new Requests({ stores, tenant, clock: systemClock, definitions: known, mayDecide, notify });
  const marked = async (agentId: string, outcome: Promise<MarkOutcome>): Promise<void> => {
    notify([agentId, ...(await mark(outcome, agentId))]);
  };
  return {
    async decide(requestId, body) {
      const request = await requests.find(requestId);
      if (request.isGuarded === true && mayDecide === undefined) {
        throw new UnsupportedError(
          `there is a rule on who may decide request "${requestId}": name the file that exports it as "mayDecide" with --agents FILE, or decide in its program`,
        );
      }
      return await requests.decide(requestId, decideOf(body, by));
    },
    pause: (agentId) => marked(agentId, stores.pause({ tenant, agentId }, by, Date.now())),
    resume: (agentId) => marked(agentId, stores.resume({ tenant, agentId }, by, Date.now())),
    async abort(agentId, reason) {
      const record = await stores.readAgent({ tenant, agentId });
      if (!record) throw new NotFoundError(`there is no agent "${agentId}"`);
      if (record.openTurnId === null) return;
      const command = { turnId: record.openTurnId, by, reason, stopReason: "user_requested" } as const;
      await marked(agentId, stores.abort({ tenant, agentId }, command, Date.now()));
    },
    async delete(agentId) {
      const holder = await stores.holder({ tenant, agentId });
      // Without an owner, no process ends the turn.
      const timeoutMs = holder ? undefined : 0;
      await deleteAgent(storedDeletions(stores, tenant, { notify, definitions: known }), agentId, {
        abort: true,
        by,
        timeoutMs,
      });
    },
  };
}

async function mark(outcome: Promise<MarkOutcome>, agentId: string): Promise<readonly string[]> {
  const marked = await outcome;
  if (marked.type === "notFound") throw new NotFoundError(`there is no agent "${agentId}"`);
  return marked.posted;
}
