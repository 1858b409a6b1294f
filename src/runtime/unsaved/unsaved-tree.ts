import { AlreadyOwnedError, LeaseLostError } from "../../errors/index.ts";
import type { AgentKey, AgentRecord } from "../../state/index.ts";
import { type AcquireOutcome, memoryStores, type ProcessIdentity, type Stores } from "../../stores/index.ts";
import { PassedCommands } from "./passed-commands.ts";

const ALL = Number.MAX_SAFE_INTEGER;

/** The stores that trees are saved to, and the process that saves them. */
export interface SaveDependencies {
  readonly durable: Stores;
  /** The stores' monotonic time. */
  readonly steady: () => number;
  readonly leaseMs: number;
  readonly process: ProcessIdentity;
}

/**
 * One tree in memory, in its own stores, until it is saved.
 * Owns: these stores, and the lease on the saved copy.
 *
 * Invariants
 * 1. Nothing is written to the durable stores before the first save; each save replaces the whole tree in one
 *    transaction.
 * 2. From its copy or its first save on, this process holds the lease on the saved root, so no other process can run the saved
 *    copy. A save that finds the lease lost rejects and overwrites nothing.
 */
export class UnsavedTree {
  readonly root: AgentKey;
  readonly stores = memoryStores();
  readonly #dependencies: SaveDependencies;
  readonly #commands = new PassedCommands();
  /** Whether this process holds the lease of the saved copy. */
  #isSaved = false;
  #saving: Promise<unknown> = Promise.resolve();

  private constructor(root: AgentKey, dependencies: SaveDependencies) {
    this.root = root;
    this.#dependencies = dependencies;
  }

  /** Creates a tree that is not stored yet. */
  static async create(root: AgentKey, dependencies: SaveDependencies): Promise<UnsavedTree> {
    const tree = new UnsavedTree(root, dependencies);
    await tree.stores.registerProcess(dependencies.process, dependencies.steady());
    return tree;
  }

  /**
   * Copies a tree from the durable stores and acquires its leases there; returns the refusal if another process holds one.
   * `undefined` while one of its agents is active in this process, because that agent would lose its work in progress.
   */
  static async copy(root: AgentKey, dependencies: SaveDependencies): Promise<UnsavedTree | AcquireOutcome | undefined> {
    const { durable, steady, leaseMs, process } = dependencies;
    const owned: AgentKey[] = [root];
    for (const { tenant, agentId } of await agentsOf(durable, root)) {
      const holder = await durable.holder({ tenant, agentId });
      if (holder?.process.processId === process.processId) return undefined;
      if (holder && agentId !== root.agentId) owned.push({ tenant, agentId });
    }
    const taken: AcquireOutcome[] = [];
    for (const key of owned) taken.push(await durable.acquire(key, process.processId, leaseMs, steady()));
    const tree = await UnsavedTree.create(root, dependencies);
    tree.#isSaved = true;
    const refused = taken.find(({ type }) => type !== "acquired");
    const stored = refused ? undefined : await durable.exportTree(root.tenant, root.agentId);
    if (!stored) {
      await tree.giveBack();
      return refused ?? { type: "notFound" };
    }
    // Keeps the rows' cursors, because clients have them.
    await tree.stores.importTree(stored, process.processId, { keepsCursors: true });
    tree.#commands.note(stored);
    return tree;
  }

  /** Writes the current tree; saves run one after the other. Returns whether other processes had sent commands meanwhile. */
  async save(): Promise<boolean> {
    const saved = this.#saving.then(() => this.#save());
    this.#saving = saved.catch(() => undefined);
    return await saved;
  }

  async #save(): Promise<boolean> {
    const { durable, steady, process } = this.#dependencies;
    const { tenant, agentId } = this.root;
    let isToldMore = false;
    if (!(await this.stores.readAgent(this.root))) return isToldMore;
    await durable.heartbeat(process.processId, steady());
    for (;;) {
      isToldMore = (await this.passCommands()) || isToldMore;
      const { known } = this.#commands;
      const tree = await this.stores.exportTree(tenant, agentId);
      if (!tree) return isToldMore;
      // The lease on the root is kept, whether or not the root is at work.
      const agents = tree.agents.map((agent) =>
        agent.record.agentId === agentId ? { ...agent, isHeld: true } : agent,
      );
      const replaces = this.#isSaved ? "own" : "absent";
      const saved = { ...tree, agents, projections: [] };
      const outcome = await durable.importTree(saved, process.processId, { known, replaces });
      if (outcome === "notOwned") throw await this.#notOwned();
      if (outcome === "newItems") continue;
      this.#isSaved = true;
      this.#commands.note(tree);
      return isToldMore;
    }
  }

  /** Passes commands that other processes sent to the saved copy on to the tree in memory. Returns whether there were any. */
  async passCommands(): Promise<boolean> {
    return this.#isSaved && (await this.#commands.pass(this.#dependencies.durable, this.stores, this.root));
  }

  /** Releases the lease on the root, or with `all` every lease of this process on the saved copy. */
  async giveBack(all = true): Promise<void> {
    if (!this.#isSaved) return;
    this.#isSaved = false;
    const { durable, process } = this.#dependencies;
    const agents = all ? await agentsOf(durable, this.root) : [this.root];
    for (const { tenant, agentId } of agents) {
      const key = { tenant, agentId };
      const holder = await durable.holder(key);
      if (holder?.process.processId !== process.processId) continue;
      await durable.release(key, holder.epoch, { as: "leaving" });
    }
  }

  async #notOwned(): Promise<Error> {
    const { agentId } = this.root;
    if (!this.#isSaved) {
      return new AlreadyOwnedError(
        `agent "${agentId}" was created by another process since it was opened here with autoSave: false; it cannot be saved under this id`,
      );
    }
    const holder = await this.#dependencies.durable.holder(this.root);
    return new LeaseLostError(
      `agent "${agentId}" was taken over by ${holder ? `process ${holder.process.pid}` : "another process"} while this one wrote no heartbeat; unsaved changes are lost`,
    );
  }
}

async function agentsOf(stores: Stores, { tenant, agentId }: AgentKey): Promise<AgentRecord[]> {
  return await stores.listAgents({ tenant, rootAgentId: agentId, limit: ALL });
}
