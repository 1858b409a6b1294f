import { DEFAULT_TENANT, type Entry } from "../../state/index.ts";
import type { CommitOutcome, Stores } from "../../stores/index.ts";

const never = Promise.withResolvers<never>().promise;

/**
 * The stores, accessed by one process of programs.
 * Owns: what the process waits for, and which intents it knows to be granted. A dead process reaches nothing any more.
 */
export class Reach {
  readonly stores: Stores;
  readonly #plain: Stores;
  readonly #granted = new Set<string>();
  #isOver = false;
  #underWay = 0;
  #answered: PromiseWithResolvers<void> | undefined;
  /** Increases with every call and every answer. */
  activity = 0;

  constructor(plain: Stores) {
    this.#plain = plain;
    this.stores = new Proxy(plain, {
      get: (stores, name: keyof Stores) => {
        const member = stores[name];
        if (typeof member !== "function" || name === "onForeignWrite" || name === "onRolledBack") return member;
        const call = member as (...given: unknown[]) => Promise<unknown>;
        return (...given: unknown[]): Promise<unknown> => this.#call(name, () => call.apply(stores, given));
      },
    });
  }

  /** Simulates the death of the process: no further call takes effect, and no pending call is answered. */
  end(): void {
    this.#isOver = true;
    this.#answered?.resolve();
  }

  /** Resolves when a pending call is answered, or at once if there is none. */
  async answered(): Promise<void> {
    if (this.#underWay === 0 || this.#isOver) return;
    this.#answered ??= Promise.withResolvers<void>();
    await this.#answered.promise;
  }

  /** Whether the intent of this call, or of this step's model call, is committed. */
  async isGranted(agentId: string, intent: string): Promise<boolean> {
    if (this.#granted.has(intent)) return true;
    // Another process may have committed it.
    for (const { entries } of await this.#plain.readJournal({ tenant: DEFAULT_TENANT, agentId }, 1)) {
      for (const entry of entries) this.#note(entry);
    }
    return this.#granted.has(intent);
  }

  async #call(name: keyof Stores, call: () => Promise<unknown>): Promise<unknown> {
    if (this.#isOver) return await never;
    this.activity += 1;
    this.#underWay += 1;
    try {
      const answer = await call();
      if (name === "commit" && !this.#isOver) this.#noteAll(answer as readonly CommitOutcome[]);
      return this.#isOver ? await never : answer;
    } finally {
      this.activity += 1;
      this.#underWay -= 1;
      this.#answered?.resolve();
      this.#answered = undefined;
    }
  }

  #noteAll(outcomes: readonly CommitOutcome[]): void {
    for (const outcome of outcomes) {
      if (outcome.type === "committed") for (const entry of outcome.entries) this.#note(entry);
    }
  }

  #note(entry: Entry): void {
    if (entry.type === "tool.started") this.#granted.add(entry.callId);
    if (entry.type === "model.requested") this.#granted.add(modelIntent(entry));
  }
}

/** Key of the intent of a step's model call. */
export function modelIntent({ turnId, step }: { readonly turnId: string; readonly step: number }): string {
  return `model ${turnId}:${step}`;
}
