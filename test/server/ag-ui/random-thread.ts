import type { RunAgentParameters } from "@ag-ui/client";
import type { Interrupt } from "@ag-ui/core";
import * as fc from "fast-check";
import { type Agent, createRuntime, type Runtime, type TroupeError } from "troupe";
import { agUiSurface, type RuntimeServer, serveRuntime, tokenAuth } from "troupe/server";
import { createFakeClock } from "troupe/testing";
import { loopTurns } from "../../support/journal-probes.ts";
import { castOf, type Speak } from "../../support/random-cast.ts";
import { type Action, turnPlan } from "../../support/random-turns.ts";
import { count, createLife, RandomWorld, type Tally } from "../../support/random-world.ts";
import { identities, requestOf } from "../served.ts";
import { Thread } from "./official-client.ts";
import { threadFaults } from "./thread-faults.ts";

/** A random program of agents, and the behaviour of its client. */
export const threadPlan = fc.record({
  program: turnPlan,
  streaming: fc.constantFrom("always" as const, "watched" as const),
  /** The texts of the model's answers, in order; then plain ones. */
  speeches: fc.array(
    fc.record({
      pieces: fc.array(
        fc.constantFrom("a", "b ", "\n", "é", "🦊", "\ud83e", "\udd8a", "data: {}\n\n", "a longer piece"),
        {
          maxLength: 6,
        },
      ),
      reasoning: fc.constantFrom(undefined, "Let me see.", "Hm.\n"),
      /** The stored text differs from the streamed one. */
      isReplaced: fc.nat(9).map((number) => number === 0),
    }),
    { maxLength: 8 },
  ),
  /** The number of pieces after which the client is cut off, for each run. */
  cuts: fc.array(fc.oneof(fc.constant(null), fc.nat(12)), { maxLength: 6 }),
  /** Whether a second client sends the same run at the same time. */
  isTwice: fc.array(fc.boolean(), { maxLength: 4 }),
  /** Whether a run is sent again after its end. */
  isAgain: fc.array(fc.boolean(), { maxLength: 4 }),
});
export type ThreadPlan = typeof threadPlan extends fc.Arbitrary<infer Value> ? Value : never;

const mostRuns = 60;
const mostCuts = 20;
/** Longer than any run takes. */
const expiresAfterMs = 1_000_000;
const mostPolls = 3_000;

interface Scene {
  readonly runtime: Runtime;
  readonly server: RuntimeServer;
  readonly thread: Thread;
}

/**
 * Runs a plan with the official client: sends messages, decides requests, continues where it was cut off. Returns the faults
 * that the client reports, and the differences between its messages and the stored ones.
 */
export class RandomThread {
  readonly #plan: ThreadPlan;
  readonly #tally: Tally;
  readonly #world: RandomWorld;
  // In the future, because the client checks expiry by its own clock.
  readonly #clock = createFakeClock(Date.UTC(2099, 0, 1));
  readonly #underWay = new Set<Promise<unknown>>();
  readonly #faults: string[] = [];
  #scene: Scene | undefined;
  #spoken = 0;
  #runs = 0;
  #decided = 0;
  /** Another client has interfered, so a refusal is not a fault. */
  #isDisturbed = false;
  #resolved = 0;
  /** The turns before the last run. */
  #before = "";
  #second: Thread | undefined;
  #isEnding = false;
  #cut: () => void = () => undefined;

  constructor(plan: ThreadPlan, tally: Tally) {
    this.#plan = plan;
    this.#tally = tally;
    this.#world = new RandomWorld(plan.program, tally, (action) => this.#act(action));
  }

  async play(): Promise<readonly string[]> {
    this.#tally.cases += 1;
    const { runtime, server, thread } = await this.#open();
    try {
      for (const number of this.#plan.program.turns.keys()) {
        thread.client.addMessage({ id: `said ${number}`, role: "user", content: `go ${number}` });
        // After a failed run the client still holds interrupts, and requires an answer for each of them.
        const resume = thread.client.pendingInterrupts.map(({ id: interruptId }) => {
          return { interruptId, status: "cancelled" as const };
        });
        await this.#converse(resume.length > 0 ? { resume } : {});
        if (this.#faults.length > 0) break;
      }
    } finally {
      this.#isEnding = true;
      await server.close();
      await runtime.shutdown();
    }
    return this.#faults;
  }

  async #open(): Promise<Scene> {
    const { streaming } = this.#plan;
    const life = createLife();
    const runtime = await createRuntime({
      agents: castOf(this.#world, life, { speak: this.#speak, expiresAfterMs }),
      clock: this.#clock,
      streaming,
      random: () => 0.5,
      resolveAuth: ({ actorId }) => {
        this.#resolved += 1;
        return this.#resolved <= 2 ? undefined : { actorId, credentials: { token: "t" } };
      },
    });
    const server = serveRuntime(runtime, {
      authenticate: tokenAuth({ tokens: identities }),
      surfaces: [agUiSurface()],
      clock: this.#clock,
    });
    const thread = new Thread(server, { agent: "lead", onWay: (response) => this.#cutOff(response) });
    this.#scene = { runtime, server, thread };
    return this.#scene;
  }

  readonly #speak: Speak = (answer) => {
    const planned = this.#plan.speeches[this.#spoken];
    this.#spoken += 1;
    const { pieces = ["the answer"], reasoning, isReplaced = false } = planned ?? {};
    const isSilent = answer.kind === "calls" && !answer.hasText;
    if (isSilent) return { text: "", reasoning };
    return { deltas: pieces, reasoning, ...(isReplaced ? { text: "something else" } : {}) };
  };

  /** Runs until the agent has no more work and no open request. */
  async #converse(given: RunAgentParameters): Promise<void> {
    const { thread, runtime } = this.#known();
    let parameters = given;
    for (let run = 0; run < mostRuns; run += 1) {
      const isRefused = await this.#run(parameters);
      if (isRefused) await this.#until(this.#rest());
      const isCompared = await this.#compare();
      const agent = await this.#agent();
      if (agent.state.status === "paused") await this.#resume(agent);
      if (this.#faults.length > 0) return;
      const next = isRefused || this.#hasFailed() ? undefined : await this.#next();
      const open = await runtime.turns({ status: "open" });
      if (next === undefined && open.length === 0 && isCompared) return;
      // After a refusal or a failure it holds interrupts that another client has decided.
      if (next === undefined) thread.client.pendingInterrupts = [];
      // A run that a pause ended continues when it is sent again.
      parameters = next ?? (this.#wasPaused() ? { runId: `run ${this.#runs - 1}` } : {});
    }
    this.#faults.push(`the thread does not end: ${JSON.stringify(thread.outcome)}`);
  }

  /** Resolves once the calls that the pause held have begun. */
  async #resume(agent: Agent): Promise<void> {
    await agent.resume();
    await loopTurns(20);
    await this.#until(this.#rest());
  }

  #hasFailed(): boolean {
    return "error" in ((this.#known().thread.outcome ?? {}) as object);
  }

  #wasPaused(): boolean {
    return (this.#known().thread.outcome as { readonly error?: string } | undefined)?.error === "paused";
  }

  /** The client's next request; `undefined` if nothing is open. */
  async #next(): Promise<RunAgentParameters | undefined> {
    const { client, outcome } = this.#known().thread;
    if (client.pendingInterrupts.length > 0) {
      return { resume: client.pendingInterrupts.map((interrupt) => this.#decide(interrupt)) };
    }
    const [toolCallId] = (outcome as { readonly success?: readonly string[] } | undefined)?.success ?? [];
    if (toolCallId === undefined) return undefined;
    const open = await this.#known().runtime.requests({ status: "open" });
    if (!open.some(({ callId }) => callId === toolCallId) && !this.#isDisturbed) {
      this.#faults.push(`${toolCallId} has no result and no open request`);
    }
    client.addMessage({ id: `shown ${toolCallId}`, role: "tool", toolCallId, content: "it is shown" });
    return {};
  }

  /** One run, repeated while it is cut off. Returns whether it was refused. */
  async #run(given: RunAgentParameters): Promise<boolean> {
    const { thread } = this.#known();
    this.#before = await this.#turns();
    const { runId = `run ${this.#runs}` } = given;
    if (given.runId === undefined) this.#runs += 1;
    const number = this.#runs - 1;
    const parameters = { ...given, runId };
    this.#second = this.#plan.isTwice[number] === true ? this.#secondClient() : undefined;
    const clients = [thread, ...(this.#second ? [this.#second] : [])];
    const [isRefused = false] = await Promise.all(clients.map((client) => this.#once(client, parameters)));
    if (isRefused) this.#second = undefined;
    for (let cut = 0; thread.outcome === undefined && !isRefused && this.#faults.length === 0; cut += 1) {
      if (cut > mostCuts) this.#faults.push("the run is cut off too often");
      count(this.#tally.acted, "went on");
      if (await this.#once(thread, parameters)) return true;
    }
    count(this.#tally.outcomes, isRefused ? "refused" : Object.keys(thread.outcome ?? {}).join());
    if (this.#plan.isAgain[number] === true && !isRefused && !this.#isDisturbed && this.#faults.length === 0) {
      const before = thread.outcome;
      thread.client.pendingInterrupts = [];
      await this.#once(thread, parameters);
      thread.outcome ??= before;
    }
    return isRefused;
  }

  /** Returns whether it was refused. */
  async #once(thread: Thread, parameters: RunAgentParameters): Promise<boolean> {
    try {
      await this.#until(thread.run(parameters));
      return false;
    } catch (error) {
      const text = String(error);
      const isRefusal = text.includes("409") && (this.#isDisturbed || text.includes("was expired"));
      if (!isRefusal) this.#faults.push(`the client reports: ${text}\n${thread.types().join(" ")}`);
      return true;
    }
  }

  /** A second page, opened next to the first one. */
  #secondClient(): Thread {
    const { server, thread } = this.#known();
    const second = new Thread(server, { agent: "lead" });
    second.client.setMessages(thread.client.messages);
    second.client.pendingInterrupts = thread.client.pendingInterrupts;
    count(this.#tally.acted, "twice");
    return second;
  }

  #decide({ id, reason, expiresAt }: Interrupt) {
    const decision = this.#plan.program.decisions[this.#decided] ?? "yes";
    this.#decided += 1;
    if (decision === "wait" && expiresAt !== undefined) {
      this.#isDisturbed = true;
      this.#clock.advance(expiresAfterMs);
    }
    if (decision === "no") return { interruptId: id, status: "cancelled" as const };
    const edited = { approved: true, editedArgs: { does: "succeed", loops: 0 } };
    const approval = decision === "edit" ? edited : { approved: true };
    return { interruptId: id, status: "resolved" as const, payload: reason === "tool_call" ? approval : "yes" };
  }

  /** Returns whether that was possible. */
  async #compare(): Promise<boolean> {
    const { runtime, thread } = this.#known();
    if (thread.outcome === undefined || (await this.#isWorking()) || (await this.#isOvertaken())) return false;
    const agent = await this.#agent();
    // During the pause, work already in flight below it still ends.
    if (agent.state.status === "paused") return false;
    for (const one of [thread, ...(this.#second?.outcome === undefined ? [] : [this.#second])]) {
      count(this.#tally.acted, "compared");
      const found = await threadFaults(runtime, agent, one);
      this.#faults.push(...found.map((fault) => `after run ${this.#runs - 1}: ${fault}`));
    }
    return true;
  }

  /** Whether turns of another client were open during the last run. */
  async #isOvertaken(): Promise<boolean> {
    return this.#isDisturbed && this.#before !== (await this.#turns());
  }

  async #turns(): Promise<string> {
    const turns = await this.#known().runtime.turns();
    return JSON.stringify(turns.map(({ turnId, status }) => [turnId, status]));
  }

  async #isWorking(): Promise<boolean> {
    const now = await (await this.#agent()).openTurn()?.current();
    return this.#underWay.size > 0 || (now !== undefined && "step" in now);
  }

  async #rest(): Promise<void> {
    while (await this.#isWorking()) await loopTurns(1);
  }

  async #until(work: Promise<unknown>): Promise<void> {
    let isDone = false;
    const done = work.finally(() => {
      isDone = true;
    });
    done.catch(() => undefined);
    for (let poll = 0; !isDone; poll += 1) {
      if (poll > mostPolls)
        throw new Error(`the run does not end: ${JSON.stringify(await this.#known().runtime.turns())}`);
      await this.#tick();
    }
    await done;
  }

  async #tick(): Promise<void> {
    const before = this.#world.activity;
    await loopTurns(4);
    if (this.#world.activity === before) this.#clock.advance(50);
  }

  /** Disturbs the run. It must not wait, because the disturbed code continues concurrently. */
  #act(action: Action): void {
    if (this.#isEnding || action === "restart") return;
    count(this.#tally.acted, action);
    if (action === "kill") {
      this.#cut();
      return;
    }
    this.#isDisturbed = true;
    const work = this.#work(action).catch((error: unknown) => {
      if ((error as Partial<TroupeError>).family === "defect") this.#faults.push(`a command failed: ${String(error)}`);
    });
    this.#underWay.add(work);
    void work.finally(() => this.#underWay.delete(work));
  }

  async #work(action: Exclude<Action, "kill" | "restart">): Promise<unknown> {
    const { server } = this.#known();
    const agent = await this.#agent();
    switch (action) {
      case "abort":
      case "abortTurn": {
        const body = { threadId: "thread-1", ...(action === "abort" ? {} : { runId: `run ${this.#runs - 1}` }) };
        const response = await server.fetch(requestOf("/ag-ui/lead/cancel", { method: "POST", body }));
        if (response.status !== 200) this.#faults.push(`cancel was answered with ${response.status}`);
        return undefined;
      }
      case "pause":
        return await agent.pause();
      case "pauseNow":
        return await agent.pause({ now: true });
      case "queue":
      case "supersede":
        return await agent.executeTurn("said elsewhere", { ifBusy: action, auth: { actorId: "ann" } }).id;
      case "steer":
        // A client of this protocol puts a message that it does not know at the end, so its order is not that of the store.
        return await agent.executeTurn("said elsewhere", { ifBusy: "queue", auth: { actorId: "ann" } }).id;
      default:
        return action satisfies never;
    }
  }

  #cutOff(response: Response): Response {
    const after = this.#plan.cuts.shift() ?? null;
    let left = after ?? Number.POSITIVE_INFINITY;
    const pieces = new TransformStream<Uint8Array, Uint8Array>({
      start: (controller) => {
        this.#cut = () => {
          left = 0;
          controller.terminate();
        };
      },
      transform: (piece, controller) => {
        left -= 1;
        if (left < 0) controller.terminate();
        else controller.enqueue(piece);
      },
    });
    const body = response.status === 200 ? (response.body?.pipeThrough(pieces) ?? null) : response.body;
    return new Response(body, response);
  }

  async #agent(): Promise<Agent> {
    const { runtime } = this.#known();
    const [record] = await runtime.list({ rootsOnly: true });
    return await runtime.find(record?.agentId ?? "");
  }

  #known(): Scene {
    if (!this.#scene) throw new Error("the plan has not been run");
    return this.#scene;
  }
}
