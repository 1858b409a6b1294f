import { AsyncLocalStorage } from "node:async_hooks";
import { setTimeout as realDelay } from "node:timers/promises";
import { type AgentDefinition, collectDefinitions, withModel, withWrappedTools } from "../../agents/index.ts";
import { wordsOfThrown } from "../../base/index.ts";
import { ModelError } from "../../errors/index.ts";
import type { LanguageModel } from "../../model/index.ts";
import { type Json, type ModelRequest, textOf } from "../../state/index.ts";
import type { RunContext, Tool } from "../../tools/index.ts";
import type { FakeClock } from "../fake-clock.ts";
import { type ScriptedCall, type ScriptedReply, scriptedModel } from "../scripted-model.ts";
import type { Life } from "./life.ts";
import type { SimulationLog, ToolRun } from "./log.ts";
import type { SimulatedAct, SimulatedAnswer, SimulatedDeath, SimulatedProgram } from "./program.ts";
import type { WatchedWorld } from "./pass-time.ts";
import { valueFor } from "./schema-values.ts";
import { seededRandom } from "./seeded-random.ts";

/** A tool that waits for the clock is due earlier; one that does not gets real time before such a step. */
const LONG_STEP_MS = 100;
const never = Promise.withResolvers<never>().promise;

export interface ProcessOptions {
  readonly program: SimulatedProgram;
  readonly log: SimulationLog;
  readonly clock: FakeClock;
  readonly life: Life;
  readonly death: SimulatedDeath | undefined;
  /** Ends the process's access to its stores. */
  readonly onDeath: () => void;
}

/**
 * One simulated process: its model, the runs of its tools, and its death.
 * Owns: which runs of tools are under way. Once it is dead, nothing in it continues.
 */
export class SimulatedProcess implements WatchedWorld {
  activity = 0;
  progress = 0;
  /** Performs an action of the program; set by the driver. Must not throw. */
  onAct: (does: SimulatedAct["does"]) => void = () => undefined;
  readonly #options: ProcessOptions;
  readonly #running = new AsyncLocalStorage<ToolRun>();
  readonly #signals = new WeakMap<ToolRun, AbortSignal>();
  readonly #underWay = new Set<ToolRun>();
  #hits = 0;

  constructor(options: ProcessOptions) {
    this.#options = options;
  }

  get isOver(): boolean {
    return this.#options.life.isOver;
  }

  get clock(): FakeClock {
    return this.#options.clock;
  }

  noteTime(): void {
    // The clock of the next process continues from that of this one.
  }

  /** Gives the code of tools that wait for neither clock nor stores the time to continue. */
  async idle(ms: number): Promise<void> {
    if (this.#underWay.size > 0 && ms >= LONG_STEP_MS) await realDelay(1);
  }

  /** The process dies here if its death is planned for this time. */
  pass(at: SimulatedDeath["at"]): void {
    this.activity += 1;
    const { death, life, log, onDeath } = this.#options;
    if (life.isOver) return;
    log.passes[at] += 1;
    if (death?.at !== at) return;
    this.#hits += 1;
    if (this.#hits !== death.hit) return;
    life.end();
    log.deaths += 1;
    for (const run of this.#underWay) run.isKilled = true;
    onDeath();
  }

  /** The world's report of an effect. */
  effect(name: string, details: Json): void {
    if (this.isOver) return;
    const run = this.#running.getStore();
    const { log } = this.#options;
    const effect = { name, details, tool: run?.tool ?? null, callId: run?.callId ?? null };
    log.effects.push(effect);
    run?.effects.push({ effect, isLate: this.#signals.get(run)?.aborted === true });
    this.progress += 1;
    this.pass("effect");
  }

  /** The definition with the simulated model and observed tools. */
  castOf(definition: AgentDefinition): AgentDefinition {
    const wrapped = withWrappedTools(definition, (tool, agent) => this.#observed(tool, agent));
    const models = [...collectDefinitions([wrapped]).values()].map(
      (agent) => [agent.name, this.#modelOf(agent)] as const,
    );
    const { [definition.name]: own, ...subagents } = Object.fromEntries(models);
    return own ? withModel(wrapped, own, { subagents }) : wrapped;
  }

  #observed(tool: Tool<never>, agent: AgentDefinition): Tool<never> {
    return Object.freeze({
      ...tool,
      execute: async (args: never, run: RunContext): Promise<unknown> => await this.#run(tool, agent, { args, run }),
      ...(tool.reconcile && {
        reconcile: async (args: never, run: RunContext) => {
          await this.#alive();
          return await this.#whileAlive(tool.reconcile?.(args, run) ?? { unknown: true });
        },
      }),
    });
  }

  async #run(
    tool: Tool<never>,
    agent: AgentDefinition,
    { args, run }: { readonly args: never; readonly run: RunContext },
  ): Promise<unknown> {
    await this.#alive();
    const { log, clock } = this.#options;
    const { callId, signal } = run;
    const note: ToolRun = {
      tool: tool.name,
      effect: tool.effect,
      callId,
      agentName: agent.name,
      args: copied(args),
      needsApproval: tool.needsApproval === true,
      timeoutMs: tool.timeoutMs,
      effects: [],
    };
    log.runs.push(note);
    this.#underWay.add(note);
    this.#signals.set(note, signal);
    const begun = clock.elapsed();
    const onAbort = (): void => {
      if (!this.isOver && clock.elapsed() - begun >= tool.timeoutMs) note.isOverdue = true;
    };
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      this.#touch();
      this.pass("tool begun");
      const result = await this.#running.run(note, async () => await this.#whileAlive(tool.execute(args, run)));
      note.end = "returned";
      this.pass("tool ended");
      return await this.#whileAlive(result);
    } catch (error) {
      await this.#alive();
      note.end = "threw";
      note.error = wordsOfThrown(error);
      this.pass("tool ended");
      await this.#alive();
      throw error;
    } finally {
      this.#underWay.delete(note);
      signal.removeEventListener("abort", onAbort);
    }
  }

  #modelOf({ name: agentName, model, output }: AgentDefinition): LanguageModel {
    const schema = output?.sentSchema;
    const scripted = scriptedModel(async (request, call): Promise<ScriptedReply> => {
      await this.#alive();
      const place = `${call.call?.turnId}:${call.call?.step}`;
      this.#touch();
      this.#options.log.prompts.push({ place, agentName, lines: linesOf(request) });
      this.pass("model asked");
      const reply = this.#replyTo(agentName, request, call);
      const text = schema === undefined ? "Done." : JSON.stringify(valueFor(schema, seededRandom(1)));
      return await this.#whileAlive(reply ?? { text });
    });
    // The name and the provider decide on prices and on what the agent sends.
    return { ...scripted, name: model.name, provider: model.provider, contextWindow: model.contextWindow };
  }

  /** The planned answer; `undefined` for the last text of the turn. */
  #replyTo(
    agentName: string,
    { toolChoice, tools = [] }: ModelRequest,
    { call }: ScriptedCall,
  ): ScriptedReply | undefined {
    if (call === undefined || toolChoice === "none" || tools.length === 0) return undefined;
    const { agentId, rootAgentId, turnId, step } = call;
    const { program, log } = this.#options;
    const answers: readonly SimulatedAnswer[] | undefined =
      agentId === rootAgentId
        ? program.turns[Number(turnId.split("#").at(-1)) - 1]?.answers
        : program.subagents[agentName];
    const answer = answers?.[step - 1];
    if (!answer) return undefined;
    const place = `${turnId}:${step}`;
    const left = log.failuresLeft.get(place) ?? answer.failures ?? 0;
    log.failuresLeft.set(place, Math.max(0, left - 1));
    if (left > 0)
      return {
        error: new ModelError("the provider is overloaded", { retryable: true, mayHaveBeenSent: true, status: 503 }),
      };
    const known = new Set(tools.map(({ name }) => name));
    const calls = answer.calls.filter(({ tool }) => known.has(tool));
    if (calls.length === 0) return undefined;
    return { toolCalls: calls.map(({ tool, arguments: args }) => ({ name: tool, arguments: textOrObject(args) })) };
  }

  /** Counts a contact of the agent with the outside, and performs the actions that are planned for it. */
  #touch(): void {
    const { log, program } = this.#options;
    log.touches += 1;
    this.progress += 1;
    for (const { at, does } of program.acts) if (at === log.touches) this.onAct(does);
  }

  async #alive(): Promise<void> {
    this.activity += 1;
    if (this.isOver) await never;
  }

  async #whileAlive<Value>(work: Value | Promise<Value>): Promise<Value> {
    try {
      return await work;
    } finally {
      await this.#alive();
    }
  }
}

function textOrObject(value: Json): object | string {
  return typeof value === "object" && value !== null ? value : String(value);
}

/** The arguments as data, for comparisons. */
function copied(args: unknown): unknown {
  try {
    return JSON.parse(JSON.stringify(args)) as unknown;
  } catch {
    return undefined;
  }
}

function linesOf({ messages }: ModelRequest): string[] {
  return messages.flatMap((message) => {
    const calls = message.role === "assistant" ? (message.toolCalls ?? []) : [];
    return [
      ...textOf(message.content)
        .split("\n")
        .map((line) => `${message.role}: ${line}`),
      ...calls.map(({ name, arguments: text }) => `${message.role} calls ${name} ${text}`),
    ];
  });
}
