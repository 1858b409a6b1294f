import { type Agent, type AgentRequest, createRuntime, type Runtime, TroupeError, type Turn } from "../../src/index.ts";
import { memoryStores, type Stores } from "../../src/stores/index.ts";
import { treeIn } from "../../src/testing/simulation/evidence.ts";
import { fractionOf, seededRandom } from "../../src/testing/simulation/seeded-random.ts";
import { type Disturbances, DisturbedInbox } from "./disturbed-inbox.ts";
import { finalStateOf } from "./final-state.ts";
import type { InboxPlan } from "./plan.ts";
import { planned } from "./team.ts";

const calm: Disturbances = { dropped: 0, doubled: 0, late: 0, reordered: false };
/** Consecutive polls without any change. */
const QUIET_LOOKS = 3;
/** A turn that has not ended after this many polls is stuck. */
const MOST_LOOKS = 4_000;
const TIGHT = { maxTokens: 4_500 };
const REJECTED = 0.3;
const agentId = "root";

export interface Played {
  readonly finalState: string;
  /** Why there is no final state. */
  readonly stuck: string | undefined;
  readonly counts: DisturbedInbox["counts"];
}

/** Plays a plan in one process on stores in memory, until its last turn has ended; with or without disturbance. */
export async function playInbox(plan: InboxPlan, isDisturbed: boolean): Promise<Played> {
  const plain = memoryStores();
  const inbox = new DisturbedInbox(plain, isDisturbed ? plan : calm, seededRandom(plan.seed));
  const { stores } = inbox;
  const runtime = await createRuntime({ agents: [planned], stores, restoreAfterCommit: plan.restores });
  try {
    const agent = await runtime.agent("lead", { agentId });
    await agent.start();
    const stuck = await new Onlooker({ plan, plain, inbox, runtime, agent }).run();
    const finalState = JSON.stringify(finalStateOf(await treeIn(plain, agentId)), null, 1);
    return { finalState, stuck, counts: inbox.counts };
  } finally {
    await runtime.shutdown();
  }
}

interface Scene {
  readonly plan: InboxPlan;
  /** The undisturbed stores. */
  readonly plain: Stores;
  readonly inbox: DisturbedInbox;
  readonly runtime: Runtime;
  readonly agent: Agent;
}

/** Sends the turns and acts as the people meanwhile. */
class Onlooker {
  readonly #scene: Scene;
  readonly #decided = new Set<string>();
  #looks = 0;

  constructor(scene: Scene) {
    this.#scene = scene;
  }

  async run(): Promise<string | undefined> {
    const { plan, agent } = this.#scene;
    const inputs = plan.turns.map((rounds) => JSON.stringify(rounds));
    const send = (input: string): Turn =>
      agent.executeTurn(input, { ifBusy: "queue", ...(plan.isTight ? { budget: TIGHT } : {}) });
    const sent: Turn[] = [];
    if (plan.atOnce) {
      for (const input of inputs) {
        const turn = send(input);
        await turn.id;
        sent.push(turn);
      }
    }
    for (const [index, input] of inputs.entries()) {
      const stuck = await this.#toItsEnd(sent[index] ?? send(input), index === inputs.length - 1);
      if (stuck !== undefined) return stuck;
    }
    return await this.#toRest();
  }

  async #toItsEnd(turn: Turn, isLast: boolean): Promise<string | undefined> {
    let isOver = false;
    const end = (): void => {
      isOver = true;
    };
    turn.result.then(end, end);
    let [seen, quiet] = [-1, 0];
    while (!isOver) {
      await loopTurn();
      this.#looks += 1;
      if (this.#looks > MOST_LOOKS) return await this.#whyStuck();
      const { activity } = this.#scene.inbox;
      quiet = activity === seen ? quiet + 1 : 0;
      seen = activity;
      await this.#attend(quiet >= QUIET_LOOKS, isLast && this.#scene.plan.aborts);
    }
    const { status } = await turn.result;
    return status === "failed" ? `turn ${await turn.id} failed` : undefined;
  }

  async #attend(isQuiet: boolean, isToBeAborted: boolean): Promise<void> {
    const { plan, agent, plain, inbox } = this.#scene;
    if (plan.pauses.includes(this.#looks)) {
      await tolerant(() => plain.pause(this.#key, "user", Date.now()));
      inbox.lookAgain();
    }
    if (!isQuiet && (!plan.decidesEagerly || isToBeAborted)) return;
    const record = await plain.readAgent(this.#key);
    if (isQuiet && record?.pause) return await tolerant(() => agent.resume());
    const open = await plain.requests({ tenant: "default", status: "open" });
    if (open.length === 0) return;
    if (!isToBeAborted) for (const request of open) await this.#decide(request);
    else if (isQuiet && (await this.#whatIsLeft()).length === 0) await tolerant(() => agent.abort("enough"));
  }

  async #decide({ requestId, callId, kind }: AgentRequest): Promise<void> {
    if (this.#decided.has(requestId)) return;
    this.#decided.add(requestId);
    const { runtime } = this.#scene;
    await tolerant(async () => {
      if (kind === "question") await runtime.decide(requestId, { verdict: "answered", result: `answer to ${callId}` });
      else if (fractionOf(callId) < REJECTED) await runtime.decide(requestId, { verdict: "rejected", reason: "no" });
      else await runtime.decide(requestId, { verdict: "approved" });
    });
  }

  /** Children end shortly after an aborted turn. */
  async #toRest(): Promise<string | undefined> {
    const { plain, agent } = this.#scene;
    for (;;) {
      const tree = await plain.listAgents({ tenant: "default", rootAgentId: agentId });
      const isBusy = tree.some(({ openTurnId, pause }) => openTurnId !== null || pause !== null);
      if (!isBusy && (await this.#whatIsLeft()).length === 0) return undefined;
      await tolerant(() => agent.resume());
      await loopTurn();
      this.#looks += 1;
      if (this.#looks > MOST_LOOKS) return await this.#whyStuck();
    }
  }

  async #whyStuck(): Promise<string> {
    const tree = await this.#scene.plain.listAgents({ tenant: "default", rootAgentId: agentId });
    const agents = tree.map(({ agentId: id, status, openTurnId }) => `${id} ${status} ${openTurnId ?? "at rest"}`);
    return `stuck: ${agents.join("; ")}; left: ${(await this.#whatIsLeft()).join()}`;
  }

  /** Keys of the items that no agent has handled. */
  async #whatIsLeft(): Promise<string[]> {
    const { plain } = this.#scene;
    const tree = await plain.listAgents({ tenant: "default", rootAgentId: agentId });
    const inboxes = await Promise.all(tree.map((one) => plain.inbox({ tenant: "default", agentId: one.agentId })));
    return inboxes.flat().map(({ key }) => key);
  }

  get #key() {
    return { tenant: "default", agentId };
  }
}

/** A command may be rejected because the state has just changed. */
async function tolerant(work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof TroupeError) || error.family === "defect") throw error;
  }
}

async function loopTurn(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  setImmediate(resolve);
  await promise;
}
