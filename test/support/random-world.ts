import { isLegal } from "../../src/context/index.ts";
import { type HookName, type ModelRequest, textOf } from "../../src/index.ts";
import { ABSENT_RESULT } from "../../src/context/turns-and-rounds.ts";
import { loopTurns } from "./journal-probes.ts";
import {
  type Action,
  type HookDeed,
  isFaultPoint,
  type StrikePoint,
  type PlannedAnswer,
  type Strike,
  type TurnPlan,
} from "./random-turns.ts";

/** One process of a case. A killed one has no further effects; its code would continue here, and is blocked. */
export interface Life {
  readonly isOver: boolean;
  readonly over: Promise<void>;
  end(): void;
}

/** Awaited by the code of a killed process. */
export const never = Promise.withResolvers<never>().promise;

export function createLife(): Life {
  const over = Promise.withResolvers<void>();
  let isOver = false;
  return {
    over: over.promise,
    end: () => {
      isOver = true;
      over.resolve();
    },
    get isOver() {
      return isOver;
    },
  };
}

/** The events of all cases of a suite: a property over empty cases proves nothing. */
export interface Tally {
  cases: number;
  modelCalls: number;
  rounds: number;
  widest: number;
  compactions: number;
  ended: Record<string, number>;
  outcomes: Record<string, number>;
  acted: Record<string, number>;
}

export function emptyTally(): Tally {
  return { cases: 0, modelCalls: 0, rounds: 0, widest: 0, compactions: 0, ended: {}, outcomes: {}, acted: {} };
}

export function count(counts: Record<string, number>, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1;
}

/**
 * Decides the next step of a case's code, in any of its processes, and collects faults. Owns the cursors into
 * the plan; the plan itself never changes.
 */
export class RandomWorld {
  readonly plan: TurnPlan;
  readonly faults: string[] = [];
  readonly tally: Tally;
  /** Increases with every event. A case in which it stands still waits for a decision or for time. */
  activity = 0;
  readonly #act: (action: Action) => void;
  readonly #onCode: (place: StrikePoint) => void;
  readonly #hits = new Map<StrikePoint, number>();
  readonly #left: Strike[];
  readonly #hooked = new Map<number, number>();
  #answered = 0;
  #seed = 1;

  constructor(
    plan: TurnPlan,
    tally: Tally,
    act: (action: Action) => void,
    onCode: (place: StrikePoint) => void = () => undefined,
  ) {
    this.plan = plan;
    this.tally = tally;
    this.#act = act;
    this.#onCode = onCode;
    this.#left = plan.strikes.filter(({ place }) => !isFaultPoint(place));
  }

  /** The answer to this request, which is checked first. */
  answer(request: ModelRequest): PlannedAnswer {
    this.activity += 1;
    this.tally.modelCalls += 1;
    this.#look(request);
    const planned = this.plan.answers[this.#answered];
    this.#answered += 1;
    return planned ?? { kind: "text", loops: 0 };
  }

  /** The action of the `index`-th planned hook at this call. */
  hookDeed(index: number): HookDeed {
    this.activity += 1;
    const times = this.#hooked.get(index) ?? 0;
    this.#hooked.set(index, times + 1);
    return this.plan.hooks[index]?.deeds[times] ?? "nothing";
  }

  /** A number from 0 up to `below`, the same in each run of one plan. */
  number(below: number): number {
    this.#seed = (this.#seed * 48_271) % 2_147_483_647;
    return this.#seed % Math.max(1, below);
  }

  /** Called by code of the case at this point: the strikes planned for it happen, and the event loop turns a few times. */
  async pass(place: StrikePoint, loops: number): Promise<void> {
    this.activity += 1;
    this.#onCode(place);
    const hit = (this.#hits.get(place) ?? 0) + 1;
    this.#hits.set(place, hit);
    for (const strike of this.#left) if (strike.place === place && strike.hit === hit) this.#act(strike.action);
    await loopTurns(loops);
  }

  /** Whether results may be missing from a prompt because of the case's own hooks, strategy or compiler. */
  get #mayLack(): boolean {
    const { history, compaction, hooks } = this.plan;
    return (
      history.kind === "broken" ||
      compaction?.kind === "wild" ||
      hooks.some(({ hook, deeds }) => hook === "beforeLlm" && deeds.includes("remove"))
    );
  }

  #look({ messages }: ModelRequest): void {
    const fault = isLegal(messages) ?? wireFault(messages);
    if (fault !== undefined) this.faults.push(`illegal prompt: ${fault}: ${messages.map(({ id }) => id).join(" ")}`);
    for (const message of messages) {
      if (message.role === "assistant" && message.toolCalls) {
        this.tally.rounds += 1;
        this.tally.widest = Math.max(this.tally.widest, message.toolCalls.length);
      }
      const isAbsent = message.role === "tool" && textOf(message.content) === ABSENT_RESULT;
      if (isAbsent && !this.#mayLack) this.faults.push(`the result ${message.id} is not shown to the model`);
    }
  }
}

/** The rule of the providers, in terms of the wire format and without our own ids: calls, then their results, in order. */
function wireFault(messages: ModelRequest["messages"]): string | undefined {
  const due: string[] = [];
  for (const [index, message] of messages.entries()) {
    if (message.role === "tool") {
      const call = due.shift();
      if (call !== message.providerId) return `message ${index} answers ${message.providerId}, due was ${call}`;
      continue;
    }
    if (due.length > 0) return `message ${index} is of role ${message.role}, where ${due[0]} is due`;
    if (message.role === "assistant") due.push(...(message.toolCalls ?? []).map(({ providerId }) => providerId));
  }
  return due.length > 0 ? `no result for ${due.join(", ")}` : undefined;
}

/** The planned hooks of one name, by their index in the plan. */
export function hooksNamed(plan: TurnPlan, name: HookName): number[] {
  return plan.hooks.flatMap(({ hook }, index) => (hook === name ? [index] : []));
}
