import type { Limits } from "../../src/budget/index.ts";

/**
 * The invariants of a tree of accounts, checked by sums over plain lists of all calls in flight and all settled calls.
 * It shares no arithmetic with the product.
 */

export const LEAST_OUTPUT = 256;
export const MOST_PASSES = 8;
export const CLAIM_MS = 10_000;

export interface PlainCall {
  readonly key: string;
  readonly holder: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly price: readonly [number, number] | null;
  readonly opensStep: boolean;
}

interface Amount {
  readonly tokens: number;
  readonly micros: number;
}

interface Waiting {
  call: PlainCall;
  /** Accounts without room for the call in any of its requests. */
  readonly blockedOn: Set<number>;
  passed: number;
  toldAt: number | null;
}

export class Reference {
  readonly out = new Map<string, PlainCall & Amount>();
  readonly line = new Map<string, Waiting>();
  mostPassed = 0;
  readonly #chains: readonly (readonly number[])[];
  readonly #limits: readonly Limits[];
  readonly #used: Amount[];
  readonly #beyond: Amount[];
  readonly #steps: { own: number; tree: number }[];

  constructor(nodes: readonly { readonly parent: number | null; readonly limits: Limits }[]) {
    const chainOf = (node: number): number[] => {
      const above = nodes[node]?.parent ?? null;
      return above === null ? [node] : [node, ...chainOf(above)];
    };
    this.#chains = nodes.map((_, node) => chainOf(node));
    this.#used = nodes.map(() => nothing);
    this.#beyond = nodes.map(() => nothing);
    this.#steps = nodes.map(() => ({ own: 0, tree: 0 }));
    this.#limits = nodes.map(({ limits }) => limits);
  }

  /** The account and its ancestors. */
  chain(node: number): readonly number[] {
    return this.#chains[node] ?? [];
  }

  /** Reserved by all calls in flight of the account and its descendants. */
  reserved(node: number): Amount {
    return [...this.out.values()]
      .filter(({ holder }) => this.chain(holder).includes(node))
      .reduce((sum, { tokens, micros }) => plus(sum, { tokens, micros }), nothing);
  }

  used(node: number): Amount {
    return this.#used[node] ?? nothing;
  }

  /** Usage reported beyond the reservations. This is the only way in which a limit can be exceeded. */
  beyond(node: number): Amount {
    return this.#beyond[node] ?? nothing;
  }

  steps(node: number): { readonly own: number; readonly tree: number } {
    return this.#steps[node] ?? { own: 0, tree: 0 };
  }

  /** Whether an account has too little left for the call even without other calls. */
  isExhausted(call: PlainCall, nodes: readonly number[] = this.chain(call.holder)): boolean {
    const least = sizeOf(call, Math.min(call.outputTokens, LEAST_OUTPUT));
    return nodes.some((node) => {
      const { maxSteps, maxTreeSteps, maxCostMicros } = this.#limits[node] ?? {};
      const { own, tree } = this.steps(node);
      const left = this.left(node);
      if (call.opensStep && node === call.holder && own >= (maxSteps ?? Infinity)) return true;
      if (call.opensStep && tree >= (maxTreeSteps ?? Infinity)) return true;
      if (maxCostMicros !== undefined && call.price === null) return true;
      return left.tokens < least.tokens || left.micros < least.micros;
    });
  }

  /** The output tokens that the limits allow, ignoring reservations. */
  outputOf(call: PlainCall): number {
    const bounds = this.chain(call.holder).map((node) => {
      const left = this.left(node);
      const [input, output] = call.price ?? [0, 0];
      const money = output === 0 ? Infinity : Math.floor((left.micros - input * call.promptTokens) / output);
      return Math.min(left.tokens - call.promptTokens, money);
    });
    return Math.min(call.outputTokens, ...bounds);
  }

  /** Accounts on which other calls' reservations leave no room for the call. */
  blockedOn(call: PlainCall): number[] {
    const size = sizeOf(call, this.outputOf(call));
    return this.chain(call.holder).filter((node) => !fits(size, this.free(node)));
  }

  left(node: number): Amount {
    const { maxTokens = Infinity, maxCostMicros = Infinity } = this.#limits[node] ?? {};
    const used = this.used(node);
    return { tokens: maxTokens - used.tokens, micros: maxCostMicros - used.micros };
  }

  free(node: number): Amount {
    const left = this.left(node);
    const reserved = this.reserved(node);
    return { tokens: left.tokens - reserved.tokens, micros: left.micros - reserved.micros };
  }

  /** Records a granted call; `line` has the stored waiting keys. Returns the keys of calls that were passed too often. */
  grant(call: PlainCall, amount: Amount, line: readonly string[], now: number): string[] {
    const keys = [...this.line.keys()];
    const place = keys.indexOf(call.key);
    const before = new Map(this.chain(call.holder).map((node) => [node, this.reserved(node).tokens > 0]));
    this.line.delete(call.key);
    this.out.set(call.key, { ...call, ...amount });
    for (const node of call.opensStep ? this.chain(call.holder) : []) {
      const { own, tree } = this.steps(node);
      this.#steps[node] = { own: node === call.holder ? own + 1 : own, tree: tree + 1 };
    }
    return (place < 0 ? keys : keys.slice(0, place)).filter((key) => {
      const waiting = this.line.get(key);
      if (!waiting || waiting.call.holder === call.holder) return false;
      const size = sizeOf(waiting.call, this.outputOf(waiting.call));
      if (!line.includes(key) || this.isExhausted(waiting.call)) return false;
      // Without calls in flight, budget is kept only for a call that was told, for a limited time.
      const isKept = waiting.toldAt !== null && !this.mayForget(key, now);
      const isPassed = [...before].some(
        ([node, wasReserved]) => waiting.blockedOn.has(node) && (wasReserved || isKept) && !fits(size, this.free(node)),
      );
      if (isPassed) waiting.passed += 1;
      this.mostPassed = Math.max(this.mostPassed, waiting.passed);
      return waiting.passed > MOST_PASSES;
    });
  }

  /** Records a waiting call; `line` has the keys in the store. Returns the faults. */
  wait(call: PlainCall, line: readonly string[], now: number): string[] {
    const known = this.line.get(call.key);
    const blockedOn = new Set([...(known?.blockedOn ?? []), ...this.blockedOn(call)]);
    const keys = [...this.line.keys()].filter((key) => line.includes(key));
    const isMoved = known !== undefined && keys.indexOf(call.key) < keys.length - 1 && line.at(-1) === call.key;
    const isLate = this.mayForget(call.key, now);
    const faults = isMoved && !isLate ? [`${call.key} lost its position in the queue`] : [];
    if (known && !isMoved) {
      Object.assign(known, { call, blockedOn, toldAt: null, passed: isLate ? 0 : known.passed });
      return faults;
    }
    this.line.delete(call.key);
    this.line.set(call.key, { call, blockedOn, passed: 0, toldAt: null });
    return faults;
  }

  /** Whether a call was told of free budget so long ago that it may lose its position in the queue. */
  mayForget(key: string, now: number): boolean {
    const toldAt = this.line.get(key)?.toldAt ?? null;
    return toldAt !== null && now - toldAt > CLAIM_MS;
  }

  /**
   * Called after the alarm: returns the calls that are still queued although budget is no longer kept for them. If an agent
   * has several queued calls, it is unknown which one was told, so none of them is returned.
   */
  forgetLate(line: readonly string[], now: number): string[] {
    const holders = [...this.line.values()].map(({ call }) => call.holder);
    return [...this.line].flatMap(([key, { call }]) => {
      const isOnly = holders.filter((holder) => holder === call.holder).length === 1;
      return isOnly && line.includes(key) && this.mayForget(key, now) ? [key] : [];
    });
  }

  /** Removes a call from the queue. It is unknown which of its agent's calls was told, so the others count as not told. */
  forget(key: string): void {
    const holder = this.line.get(key)?.call.holder;
    this.line.delete(key);
    for (const waiting of this.line.values()) if (waiting.call.holder === holder) waiting.toldAt = null;
  }

  tell(key: string, now: number): void {
    const waiting = this.line.get(key);
    if (waiting) waiting.toldAt ??= now;
  }

  settle(key: string, amount: Amount): void {
    const call = this.out.get(key);
    if (!call) return;
    this.out.delete(key);
    const beyond = {
      tokens: Math.max(0, amount.tokens - call.tokens),
      micros: Math.max(0, amount.micros - call.micros),
    };
    for (const node of this.chain(call.holder)) {
      this.#used[node] = plus(this.used(node), amount);
      this.#beyond[node] = plus(this.beyond(node), beyond);
    }
  }
}

export function sizeOf({ promptTokens, price }: PlainCall, outputTokens: number): Amount {
  const [input, output] = price ?? [0, 0];
  return { tokens: promptTokens + outputTokens, micros: input * promptTokens + output * outputTokens };
}

export function fits(size: Amount, free: Amount): boolean {
  return size.tokens <= free.tokens && size.micros <= free.micros;
}

const nothing: Amount = { tokens: 0, micros: 0 };

function plus(one: Amount, other: Amount): Amount {
  return { tokens: one.tokens + other.tokens, micros: one.micros + other.micros };
}
