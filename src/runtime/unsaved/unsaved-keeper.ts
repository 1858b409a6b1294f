import type { Clock } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import { type AgentKey, keyText, rootOf } from "../../state/index.ts";
import {
  type AcquireOutcome,
  type ForeignWrites,
  isTreeChanged,
  type ProcessIdentity,
  type Stores,
} from "../../stores/index.ts";
import { type SaveDependencies, UnsavedTree } from "./unsaved-tree.ts";

export interface UnsavedOptions {
  readonly clock: Pick<Clock, "now" | "elapsed">;
  readonly leaseMs: number;
  /** Whether `mayDecide` is set; each request notes it. Default false. */
  readonly guardsRequests?: boolean | undefined;
  /** Called after every change of a tree in the durable stores. */
  readonly onDurable?: ((rootAgentId: string) => void) | undefined;
  /** Called before the durable stores are closed. */
  readonly onClose?: (() => Promise<void>) | undefined;
}

/**
 * The trees that are saved only on request (`autoSave: false`).
 * Owns: which trees are in memory, and which will be loaded when one of their agents is activated. Does not own: the
 * trees.
 */
export class UnsavedKeeper {
  readonly durable: Stores;
  readonly options: UnsavedOptions;
  readonly #trees = new Map<string, UnsavedTree>();
  /** Roots whose trees are loaded into memory when one of their agents is activated. */
  readonly #wanted = new Set<string>();
  readonly #moves = new Map<string, Promise<unknown>>();
  readonly #listeners = new Set<(writes: ForeignWrites) => void>();
  #stopListening: (() => void) | undefined;
  #process: ProcessIdentity | undefined;
  #clockOffset = 0;
  #isClosed = false;

  constructor(durable: Stores, options: UnsavedOptions) {
    this.durable = durable;
    this.options = options;
  }

  get isEmpty(): boolean {
    return this.#trees.size === 0;
  }

  get trees(): readonly UnsavedTree[] {
    return [...this.#trees.values()];
  }

  isHeld(key: AgentKey): boolean {
    return this.#trees.has(rootText(key));
  }

  /** The stores that hold the agent's tree. */
  route(key: AgentKey): Stores {
    if (this.#trees.size === 0) return this.durable;
    return this.#trees.get(rootText(key))?.stores ?? this.durable;
  }

  async register(process: ProcessIdentity, now: number, elapsed?: number): Promise<number> {
    this.#process = process;
    this.#clockOffset = await this.durable.registerProcess(process, now, elapsed);
    return this.#clockOffset;
  }

  /** Keeps the tree in memory from now on: at once if it is new, else from its next activation on. */
  async hold(key: AgentKey): Promise<void> {
    const text = rootText(key);
    if (this.#wanted.has(text)) return;
    const root = rootKeyOf(key);
    const holder = await this.durable.holder(root);
    if (holder && holder.process.processId === this.#process?.processId) {
      throw new InvalidInputError(
        `agent "${root.agentId}" lives here with autoSave; call its shutdown() before it is opened with autoSave: false`,
      );
    }
    const isStored = (await this.durable.readAgent(root)) !== undefined;
    const tree = isStored ? undefined : await UnsavedTree.create(root, this.#dependencies());
    if (this.#wanted.has(text)) return;
    this.#wanted.add(text);
    if (tree) this.#trees.set(text, tree);
  }

  async save(key: AgentKey): Promise<void> {
    const tree = this.#trees.get(rootText(key));
    if (!tree) return;
    const isToldMore = await tree.save();
    this.options.onDurable?.(tree.root.agentId);
    if (isToldMore) this.#tell("any");
  }

  /** Saves the tree; with its root's key it also removes it from memory and gives its lease back. */
  async letGo(key: AgentKey): Promise<void> {
    const text = rootText(key);
    const tree = this.#trees.get(text);
    if (!tree || tree.root.agentId !== key.agentId) return await this.save(key);
    await this.#move(text, async () => {
      for (let isSaved = false; !isSaved; ) {
        const { changes } = tree;
        await this.save(key);
        isSaved = tree.changes === changes;
      }
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
    await this.#moves.get(text)?.catch(() => undefined);
    if (this.#wanted.has(text) && !this.#trees.has(text)) {
      const refused = await this.#move(text, () => this.#load(rootKeyOf(key)));
      // The holder of the root's lease has the tree, but this process may still get the lease of a descendant.
      if (refused && key.agentId === rootOf(key.agentId)) return refused;
    }
    return await this.route(key).acquire(key, processId, leaseMs, steady, isKnown);
  }

  async #load(root: AgentKey): Promise<AcquireOutcome | undefined> {
    const copied = await UnsavedTree.copy(root, this.#dependencies());
    if (!(copied instanceof UnsavedTree)) return copied;
    this.#trees.set(keyText(root), copied);
    // Commands that were sent during the copy.
    if (await copied.passCommands()) this.#tell("any");
    return undefined;
  }

  /** Runs one move at a time for each tree. */
  async #move<T>(text: string, work: () => Promise<T>): Promise<T> {
    const before = this.#moves.get(text)?.catch(() => undefined);
    const move = before ? before.then(work) : work();
    this.#moves.set(text, move);
    try {
      return await move;
    } finally {
      if (this.#moves.get(text) === move) this.#moves.delete(text);
    }
  }

  /** Takes in what other processes sent to the saved trees. Returns whether there was anything. */
  async passCommands(): Promise<boolean> {
    let isAny = false;
    for (const tree of this.trees) isAny = (await tree.passCommands()) || isAny;
    return isAny;
  }

  async heartbeat(processId: string, steady: number): Promise<boolean> {
    const isKnown = await this.durable.heartbeat(processId, steady);
    if (!this.isEmpty && (await this.passCommands())) this.#tell("any");
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
    if (this.trees.every(({ root }) => !isTreeChanged(writes, root))) return this.#tell(writes);
    this.passCommands()
      .catch((error: unknown) => {
        if (!this.#isClosed) process.emitWarning(`what other processes sent could not be read: ${String(error)}`);
      })
      .finally(() => this.#tell("any"));
  }

  #tell(writes: ForeignWrites): void {
    for (const listener of this.#listeners) listener(writes);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.options.onClose?.();
    // If giving back fails, the leases expire.
    await Promise.allSettled(this.trees.map((tree) => tree.giveBack()));
    this.#trees.clear();
    await this.durable.close();
  }

  #dependencies(): SaveDependencies {
    if (!this.#process) throw new InvalidInputError("the process has to be registered before trees are held");
    const { clock, leaseMs } = this.options;
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
