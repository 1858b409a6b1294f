import { InvalidInputError, NotFoundError, PolicyRefusedError } from "../errors/index.ts";
import { takeBill, takeNote, takeQuestion } from "./call-in-parts.ts";
import {
  type RunContext,
  takeArtifact,
  takeArtifactName,
  takeAwaitOptions,
  takeGenerateInput,
  takeSpawnInput,
  takeUpdate,
} from "./run-context.ts";
import { nothingToRedact, redactDeep } from "./secrets.ts";
import type { Redact } from "./tool.ts";
import type { ScheduleTurnInput, ScheduleTurnLimits } from "./turn-schedules.ts";

export interface RevocableRun {
  readonly run: RunContext;
  /** From then on, `redact` is applied to all values that leave through this run (progress, artifacts, prompts, a child's input). */
  readonly redactWith: (redact: Redact) => void;
  /** From then on, every access to `run`, and every method obtained from it earlier, throws. Calling it again changes nothing. */
  readonly revoke: () => void;
  /** Call it when the tool's code reaches its first pause: later calls are not its first action. */
  readonly begun: () => void;
  /** Whether the tool's first action was a `spawn()` that was refused with this error, so that nothing was done before. */
  readonly isFirstRefusal: (error: unknown) => boolean;
}

/** The first call that a tool makes on its run. */
interface FirstAct {
  isOver: boolean;
  refusal?: unknown;
}

/**
 * A run context that is valid for one call. `auth` is not enumerable, so that logging the run shows no credentials. Plain values that
 * were read during the call (a string, the signal) stay valid. Most tools do not read it, so it is created on first access.
 */
export function revocable(callId: string, contextOf: () => RunContext): RevocableRun {
  return new LentRun(callId, contextOf);
}

class LentRun implements RevocableRun {
  readonly run: RunContext;
  readonly #callId: string;
  readonly #contextOf: () => RunContext;
  #isRevoked = false;
  #context: RunContext | undefined;
  #shown: RunContext | undefined;
  #redact = nothingToRedact;
  readonly #firstAct: FirstAct = { isOver: false };

  constructor(callId: string, contextOf: () => RunContext) {
    this.#callId = callId;
    this.#contextOf = contextOf;
    this.run = new Proxy(new Shown(() => this.#show()) as unknown as RunContext, asShown);
  }

  redactWith(next: Redact): void {
    this.#redact = next;
  }

  revoke(): void {
    this.#isRevoked = true;
    this.#context = undefined;
  }

  begun(): void {
    this.#firstAct.isOver = true;
  }

  isFirstRefusal(error: unknown): boolean {
    return error !== undefined && this.#firstAct.refusal === error;
  }

  #show(): RunContext {
    if (this.#shown) return this.#shown;
    this.#shown = lend(
      () => this.#live(),
      (value) => redactDeep(value, this.#redact),
      this.#firstAct,
    );
    Object.defineProperty(this.#shown, "auth", { enumerable: false });
    return this.#shown;
  }

  #live(): RunContext {
    if (!this.#isRevoked) return (this.#context ??= this.#contextOf());
    throw new InvalidInputError(
      `The run context of call ${this.#callId} was used after the call had ended. Await all work inside execute, and copy what is needed later.`,
      { details: { callId: this.#callId } },
    );
  }
}

/** Stands in for the run, which has some twenty getters and methods, until the tool accesses it. */
class Shown {
  readonly #show: () => RunContext;

  constructor(show: () => RunContext) {
    this.#show = show;
  }

  static of(target: object): RunContext {
    return (target as Shown).#show();
  }
}

/** Read-only: assignments throw, as on a frozen object. */
const asShown: ProxyHandler<RunContext> = {
  get: (target, key) => Reflect.get(Shown.of(target), key),
  has: (target, key) => Reflect.has(Shown.of(target), key),
  ownKeys: (target) => Reflect.ownKeys(Shown.of(target)),
  getOwnPropertyDescriptor: (target, key) => Reflect.getOwnPropertyDescriptor(Shown.of(target), key),
  getPrototypeOf: () => Object.prototype,
  set: refuseChange,
  defineProperty: refuseChange,
  deleteProperty: refuseChange,
  setPrototypeOf: () => false,
  preventExtensions: () => false,
};

function refuseChange(_target: object, key: string | symbol): never {
  throw new TypeError(`Cannot assign to read only property '${String(key)}' of the run context`);
}

/**
 * Each getter calls `live`, and so does each method when it is called, so keeping a method does not help. Values from the tool's code are
 * parsed here, before anything reads them.
 */
function lend(live: () => RunContext, conceal: <Value>(value: Value) => Value, firstAct: FirstAct): RunContext {
  const progress: RunContext["progress"] = (update) => live().progress(conceal(takeUpdate(update)));
  const generate: RunContext["generate"] = (request) => {
    const run = live();
    firstAct.isOver = true;
    return heard(async () => await run.generate(conceal(takeGenerateInput(request))));
  };
  const saveArtifact: RunContext["saveArtifact"] = (artifact) => {
    const run = live();
    firstAct.isOver = true;
    return heard(async () => {
      const { content, ...named } = takeArtifact(artifact);
      const shown = typeof content === "string" ? conceal(content) : content;
      return await run.saveArtifact({ ...conceal(named), content: shown });
    });
  };
  const artifact: RunContext["artifact"] = (idOrName) => {
    const run = live();
    firstAct.isOver = true;
    return heard(async () => await run.artifact(takeArtifactName(idOrName)));
  };
  const artifacts: RunContext["artifacts"] = () => {
    const run = live();
    firstAct.isOver = true;
    return heard(async () => await run.artifacts());
  };
  const spawn: RunContext["spawn"] = (definition, input, options) => {
    const run = live();
    const isFirst = !firstAct.isOver;
    firstAct.isOver = true;
    return heard(async () => {
      try {
        return await run.spawn(definition, conceal(takeSpawnInput(input)), options);
      } catch (error) {
        if (isFirst && isRefusal(error)) firstAct.refusal = error;
        throw error;
      }
    });
  };
  const awaitChild: RunContext["await"] = (child, options) => live().await(child, conceal(takeAwaitOptions(options)));
  const ask: RunContext["ask"] = (question) => live().ask(conceal(takeQuestion(question)));
  const note: RunContext["note"] = (value) => {
    const run = live();
    firstAct.isOver = true;
    return heard(async () => await run.note(conceal(takeNote(value))));
  };
  const bill: RunContext["bill"] = (use) => {
    const run = live();
    firstAct.isOver = true;
    return heard(async () => await run.bill(takeBill(use)));
  };
  const act = <Result>(work: (run: RunContext) => Promise<Result>): Promise<Result> => {
    const run = live();
    firstAct.isOver = true;
    return heard(async () => await work(run));
  };
  const schedules: RunContext["schedules"] = Object.freeze({
    add: (input: ScheduleTurnInput, limits?: ScheduleTurnLimits) =>
      act((run) => run.schedules.add(conceal(input), limits)),
    list: () => act((run) => run.schedules.list()),
    cancel: (key: string) => act((run) => run.schedules.cancel(key)),
  });
  return {
    get agent() {
      return live().agent;
    },
    get turnId() {
      return live().turnId;
    },
    get step() {
      return live().step;
    },
    get callId() {
      return live().callId;
    },
    get attempt() {
      return live().attempt;
    },
    get prompt() {
      return live().prompt;
    },
    get previousTools() {
      return live().previousTools;
    },
    get trace() {
      return live().trace;
    },
    get auth() {
      return live().auth;
    },
    get actorId() {
      return live().actorId;
    },
    get contextPercent() {
      return live().contextPercent;
    },
    get signal() {
      return live().signal;
    },
    get idempotencyKey() {
      return live().idempotencyKey;
    },
    get progress() {
      return live() && progress;
    },
    get generate() {
      return live() && generate;
    },
    get saveArtifact() {
      return live() && saveArtifact;
    },
    get artifact() {
      return live() && artifact;
    },
    get artifacts() {
      return live() && artifacts;
    },
    get spawn() {
      return live() && spawn;
    },
    get await() {
      return live() && awaitChild;
    },
    get noted() {
      return live().noted;
    },
    get answer() {
      return live().answer;
    },
    get note() {
      return live() && note;
    },
    get ask() {
      return live() && ask;
    },
    get bill() {
      return live() && bill;
    },
    get schedules() {
      return live() && schedules;
    },
  };
}

/** Prevents that a rejection which the tool's code does not await ends the process. */
function heard<T>(work: () => Promise<T>): Promise<T> {
  const promise = work();
  promise.catch(() => undefined);
  return promise;
}

/** Whether an error of `spawn()` means that no child was started. */
function isRefusal(error: unknown): boolean {
  return error instanceof InvalidInputError || error instanceof NotFoundError || error instanceof PolicyRefusedError;
}
