import type { Clock } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import { type AgentKey, keyText, rootOf } from "../../state/index.ts";
import {
  type AcquireOutcome,
  deletedError,
  type ForeignWrites,
  isTreeChanged,
  type ProcessIdentity,
  type Stores,
} from "../../stores/index.ts";
import { type SaveDependencies, UnsavedTree } from "./unsaved-tree.ts";

export interface UnsavedOptions {
  readonly clock: Pick<Clock, "now" | "elapsed">;
  readonly leaseMs: number;
  /** Called after each save. */
  readonly onSaved?: ((rootAgentId: string) => void) | undefined;
}

/**
 * The trees of agents that were opened with `autoSave: false`.
 * Owns: which trees are in memory, and which are copied into memory when one of their agents is activated.
 *
 * Invariants
 * 1. A call about an agent goes to the tree in memory if there is one, and to the durable stores otherwise.
 * 2. While a tree is copied into memory or leaves it, calls about its agents wait, and then go to the tree's new stores.
 */
export class UnsavedTrees {
  readonly durable: Stores;
  readonly #options: UnsavedOptions;
  readonly #trees = new Map<string, UnsavedTree>();
  /** Roots whose trees are copied into memory when one of their agents is activated. */
  readonly #wanted = new Set<string>();
  /** Trees that are being copied or are leaving memory. Their promises never reject. */
  readonly #moves = new Map<string, Promise<unknown>>();
  readonly #listeners = new Set<(writes: ForeignWrites) => void>();
  #stopListening: (() => void) | undefined;
  #process: ProcessIdentity | undefined;
  #clockOffset = 0;
  #isClosed = false;

  constructor(durable: Stores, options: UnsavedOptions) {
    this.durable = durable;
    this.#options = options;
  }

  get inMemory(): readonly UnsavedTree[] {
    return [...this.#trees.values()];
  }

  get isEmpty(): boolean {
    return this.#trees.size === 0 && this.#moves.size === 0;
  }

  has(key: AgentKey): boolean {
    return this.#trees.size > 0 && this.#trees.has(rootText(key));
  }

  /** Calls the stores that contain the agent's tree. */
  at<T>(key: AgentKey, call: (stores: Stores) => Promise<T>): Promise<T> {
    if (this.isEmpty) return call(this.durable);
    const move = this.#moves.get(rootText(key));
    return move ? move.then(() => this.at(key, call)) : call(this.storesOf(key));
  }

  /** The stores that contain the agent's tree; not to be called while it moves (`settled`). */
  storesOf(key: AgentKey): Stores {
    return this.#trees.get(rootText(key))?.stores ?? this.durable;
  }

  /** Resolves when none of these agents' trees is moving. */
  async settled(keys: readonly AgentKey[]): Promise<void> {
    for (;;) {
      const moves = keys.flatMap((key) => this.#moves.get(rootText(key)) ?? []);
      if (moves.length === 0) return;
      await Promise.all(moves);
    }
  }

  async register(process: ProcessIdentity, now: number, elapsed?: number): Promise<number> {
    this.#process = process;
    this.#clockOffset = await this.durable.registerProcess(process, now, elapsed);
    return this.#clockOffset;
  }

  /** Keeps the tree in memory from now on: immediately if it is new, otherwise from its next activation on. */
  async keep(key: AgentKey): Promise<void> {
    const text = rootText(key);
    if (this.#wanted.has(text)) return;
    const root = rootKeyOf(key);
    const holder = await this.durable.holder(root);
    if (holder && holder.process.processId === this.#process?.processId) {
      throw new InvalidInputError(
        `agent "${root.agentId}" is active in this process with autoSave; call its shutdown() before opening it with autoSave: false`,
      );
    }
    const isStored = (await this.durable.readAgent(root)) !== undefined;
    const deletion = isStored ? undefined : await this.durable.deletion(root.tenant, root.agentId);
    if (deletion) throw deletedError(root.agentId, deletion);
    const tree = isStored ? undefined : await UnsavedTree.create(root, this.#dependencies());
    if (this.#wanted.has(text)) return;
    this.#wanted.add(text);
    if (tree) this.#trees.set(text, tree);
  }

  /** For a tree that was deleted: nothing of it is saved any more. */
  drop(key: AgentKey): void {
    const text = rootText(key);
    this.#trees.delete(text);
    this.#wanted.delete(text);
  }

  async save(key: AgentKey): Promise<void> {
    const tree = this.#trees.get(rootText(key));
    if (tree) await this.#save(tree);
  }

  async #save(tree: UnsavedTree): Promise<void> {
    const isToldMore = await tree.save();
    this.#options.onSaved?.(tree.root.agentId);
    if (isToldMore) this.#tell("any");
  }

  /** Saves the tree; with its root's key it also removes it from memory and releases its lease. */
  async letGo(key: AgentKey): Promise<void> {
    const text = rootText(key);
    const tree = this.#trees.get(text);
    if (!tree || tree.root.agentId !== key.agentId) return await this.save(key);
    await this.#move(text, async () => {
      await this.#save(tree);
      this.#trees.delete(text);
      await tree.giveBack(false);
    });
  }

  async acquire(
    key: AgentKey,
    processId: string,
    leaseMs: number,
    steady: number,
    isKnown?: (definitionName: string) => boolean,
  ): Promise<AcquireOutcome> {
    const text = rootText(key);
    await this.#moves.get(text);
    if (this.#wanted.has(text) && !this.#trees.has(text)) {
      const refused = await this.#move(text, () => this.#copy(rootKeyOf(key)));
      // The holder of the root's lease owns the tree, but this process may still get the lease of a descendant.
      if (refused && key.agentId === rootOf(key.agentId)) return refused;
    }
    return await this.at(key, (stores) => stores.acquire(key, processId, leaseMs, steady, isKnown));
  }

  async #copy(root: AgentKey): Promise<AcquireOutcome | undefined> {
    const text = keyText(root);
    if (this.#trees.has(text)) return undefined;
    const copied = await UnsavedTree.copy(root, this.#dependencies());
    if (!(copied instanceof UnsavedTree)) return copied;
    this.#trees.set(text, copied);
    // Passes commands that were sent during the copy.
    if (await copied.passCommands()) this.#tell("any");
    return undefined;
  }

  /** Runs one move at a time for each tree. */
  async #move<T>(text: string, work: () => Promise<T>): Promise<T> {
    const before = this.#moves.get(text);
    const move = before ? before.then(work) : work();
    const over = move.catch(() => undefined);
    this.#moves.set(text, over);
    try {
      return await move;
    } finally {
      if (this.#moves.get(text) === over) this.#moves.delete(text);
    }
  }

  /** Passes commands that other processes sent to the saved copies on to the trees in memory. Returns whether there were any. */
  async #passCommands(): Promise<boolean> {
    let isAny = false;
    for (const tree of this.inMemory) isAny = (await tree.passCommands()) || isAny;
    return isAny;
  }

  async heartbeat(processId: string, steady: number): Promise<boolean> {
    const isKnown = await this.durable.heartbeat(processId, steady);
    if (await this.#passCommands()) this.#tell("any");
    return isKnown;
  }

  onForeignWrite(listener: (writes: ForeignWrites) => void): () => void {
    const entry = (writes: ForeignWrites): void => listener(writes);
    this.#listeners.add(entry);
    this.#stopListening ??= this.durable.onForeignWrite((writes) => this.#onForeignWrite(writes));
    return () => {
      this.#listeners.delete(entry);
      if (this.#listeners.size > 0) return;
      this.#stopListening?.();
      this.#stopListening = undefined;
    };
  }

  #onForeignWrite(writes: ForeignWrites): void {
    if (this.inMemory.every(({ root }) => !isTreeChanged(writes, root))) return this.#tell(writes);
    this.#passCommands()
      .catch((error: unknown) => {
        if (!this.#isClosed) process.emitWarning(`commands of other processes could not be read: ${String(error)}`);
      })
      .finally(() => this.#tell("any"));
  }

  #tell(writes: ForeignWrites): void {
    for (const listener of this.#listeners) listener(writes);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    // If the release fails, the leases expire.
    await Promise.allSettled(this.inMemory.map((tree) => tree.giveBack()));
    this.#trees.clear();
    await this.durable.close();
  }

  #dependencies(): SaveDependencies {
    if (!this.#process) throw new InvalidInputError("the process has to be registered before trees are kept in memory");
    const { clock, leaseMs } = this.#options;
    const steady = (): number => clock.elapsed() + this.#clockOffset;
    return { durable: this.durable, steady, leaseMs, process: this.#process };
  }
}

function rootKeyOf({ tenant, agentId }: AgentKey): AgentKey {
  return { tenant, agentId: rootOf(agentId) };
}

function rootText(key: AgentKey): string {
  return keyText(rootKeyOf(key));
}
