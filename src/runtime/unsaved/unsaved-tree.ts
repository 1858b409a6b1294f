import { changeBetween } from "../../budget/index.ts";
import {
  type AgentKey,
  type AgentRecord,
  type InboxItem,
  type JournalRow,
  agentIdentitySchema,
} from "../../state/index.ts";
import {
  type KnownItems,
  type StoredTree,
  type Stores,
  type AcquireOutcome,
  type Committed,
  memoryStores,
  type ProcessIdentity,
} from "../../stores/index.ts";
import { AlreadyOwnedError, LeaseLostError } from "../../errors/index.ts";

const ALL = Number.MAX_SAFE_INTEGER;

/** The stores that trees are saved to, and the process that saves them. */
export interface SaveDependencies {
  readonly durable: Stores;
  /** The stores' steady time. */
  readonly steady: () => number;
  readonly leaseMs: number;
  readonly process: ProcessIdentity;
}

/**
 * One tree that is kept in memory until it is saved.
 * Owns: the current tree, and the lease on its saved copy. Does not own: which calls are routed here.
 *
 * Invariants
 * 1. Nothing is written to the durable stores before the first save; each save replaces the whole tree in one
 *    transaction.
 * 2. From its copy or its first save on, this process holds its root's lease there, so no other process can run the
 *    saved copy. A save that finds the lease lost rejects and overwrites nothing.
 */
export class UnsavedTree {
  readonly root: AgentKey;
  /** The current tree. */
  readonly stores: Stores;
  /** Counts calls that may have changed the tree. */
  changes = 0;
  readonly #dependencies: SaveDependencies;
  readonly #memory = memoryStores();
  readonly #commands = new PassedCommands();
  #cursors = new CopiedCursors([], []);
  #isClaimed = false;
  #saving: Promise<unknown> = Promise.resolve();

  private constructor(root: AgentKey, dependencies: SaveDependencies) {
    this.root = root;
    this.#dependencies = dependencies;
    this.stores = this.#asSeen(this.#memory);
  }

  /** Creates a tree that no store has yet. */
  static async create(root: AgentKey, dependencies: SaveDependencies): Promise<UnsavedTree> {
    const tree = new UnsavedTree(root, dependencies);
    await tree.#memory.registerProcess(dependencies.process, dependencies.steady());
    return tree;
  }

  /**
   * Takes a tree out of the durable stores, with its leases there; returns the refusal if another process holds one.
   * Undefined while one of its agents lives in this process, because that agent would lose its work in progress.
   */
  static async copy(root: AgentKey, dependencies: SaveDependencies): Promise<UnsavedTree | AcquireOutcome | undefined> {
    const { durable, steady, leaseMs, process } = dependencies;
    const held: AgentKey[] = [root];
    for (const { tenant, agentId } of await agentsOf(durable, root)) {
      const holder = await durable.holder({ tenant, agentId });
      if (holder?.process.processId === process.processId) return undefined;
      if (holder && agentId !== root.agentId) held.push({ tenant, agentId });
    }
    const taken: AcquireOutcome[] = [];
    for (const key of held) taken.push(await durable.acquire(key, process.processId, leaseMs, steady()));
    const tree = await UnsavedTree.create(root, dependencies);
    tree.#isClaimed = true;
    const refused = taken.find(({ type }) => type !== "acquired");
    const stored = refused ? undefined : await durable.exportTree(root.tenant, root.agentId);
    if (!stored) {
      await tree.giveBack();
      return refused ?? { type: "notFound" };
    }
    await tree.#fill(stored);
    return tree;
  }

  async #fill(stored: StoredTree): Promise<void> {
    const { tenant, agentId } = this.root;
    await this.#memory.importTree(stored, this.#dependencies.process.processId);
    this.#cursors = new CopiedCursors(await this.#memory.readTree(tenant, agentId, 0, ALL), stored.rows);
    this.#commands.note(stored);
  }

  /**
   * Writes the tree as it is when its turn comes, since saves run one after the other. Returns whether other processes
   * had sent something meanwhile.
   */
  async save(): Promise<boolean> {
    const saved = this.#saving.then(() => this.#save());
    this.#saving = saved.catch(() => undefined);
    return await saved;
  }

  async #save(): Promise<boolean> {
    const { durable, steady, process } = this.#dependencies;
    const { tenant, agentId } = this.root;
    const record = await this.#memory.readAgent(this.root);
    if (!record) return false;
    await durable.heartbeat(process.processId, steady());
    if (this.#isClaimed) await this.#checkClaim();
    else await this.#claim(record);
    for (let isToldMore = false; ; ) {
      isToldMore = (await this.passCommands()) || isToldMore;
      const tree = await this.#memory.exportTree(tenant, agentId);
      if (!tree) return isToldMore;
      // The lease on the root is kept, whether or not the root is at work.
      const agents = tree.agents.map((agent) =>
        agent.record.agentId === agentId ? { ...agent, isHeld: true } : agent,
      );
      const saved = { ...tree, agents, projections: [] };
      // Commands that arrived after passCommands() must be passed before the tree is replaced.
      if (!(await durable.importTree(saved, process.processId, this.#commands.known))) continue;
      this.#commands.note(tree);
      return isToldMore;
    }
  }

  /** Passes what other processes sent to the saved copy on to the current tree. Returns whether there was anything. */
  async passCommands(): Promise<boolean> {
    if (!this.#isClaimed) return false;
    return await this.#commands.pass(this.#dependencies.durable, this.stores, this.root);
  }

  /** Gives back the lease on the root, or with `all` every lease of this process on the saved copy. */
  async giveBack(all = true): Promise<void> {
    if (!this.#isClaimed) return;
    this.#isClaimed = false;
    const { durable, process } = this.#dependencies;
    const agents = all ? await agentsOf(durable, this.root) : [this.root];
    for (const { tenant, agentId } of agents) {
      const key = { tenant, agentId };
      const holder = await durable.holder(key);
      if (holder?.process.processId !== process.processId) continue;
      await durable.release(key, holder.epoch, { as: "leaving" });
    }
  }

  /** Creates the root in the durable stores. Throws if another process has created an agent of that id. */
  async #claim(record: AgentRecord): Promise<void> {
    const { durable, steady, leaseMs, process } = this.#dependencies;
    const accounts = await this.#memory.accounts(record.tenant, record.rootAgentId);
    const account = accounts.find(({ id }) => id === record.accountId);
    const [first] = await this.#memory.readJournal(this.root, 1);
    const seed = first?.entries[0]?.type === "conversation.seeded" ? first.entries[0].messageIds : [];
    const messages = await this.#memory.messagesById(this.root, seed);
    const { created } = await durable.createAgent(agentIdentitySchema.parse(record), account ?? null, { messages });
    const taken = created && (await durable.acquire(this.root, process.processId, leaseMs, steady()));
    if (taken && taken.type === "acquired") {
      this.#isClaimed = true;
      return;
    }
    throw new AlreadyOwnedError(
      `agent "${record.agentId}" was made by another process since it was opened here with autoSave: false; it cannot be saved under this id`,
    );
  }

  async #checkClaim(): Promise<void> {
    const { durable, process } = this.#dependencies;
    const holder = await durable.holder(this.root);
    if (holder?.process.processId === process.processId) return;
    throw new LeaseLostError(
      `agent "${this.root.agentId}" was taken over by ${holder ? `process ${holder.process.pid}` : "another process"} while this one gave no sign of life; what was not saved here cannot be saved any more`,
    );
  }

  #asSeen(memory: Stores): Stores {
    const noted = <Answer>(answer: Answer): Answer => {
      this.changes += 1;
      return answer;
    };
    return {
      ...memory,
      commit: async (batches, now, steady) => {
        const outcomes = await noted(memory.commit(batches, now, steady));
        return outcomes.map((outcome) => (outcome.type === "committed" ? this.#cursors.outwardOf(outcome) : outcome));
      },
      createAgent: (...given) => noted(memory.createAgent(...given)),
      openTurn: (...given) => noted(memory.openTurn(...given)),
      pause: (...given) => noted(memory.pause(...given)),
      resume: (...given) => noted(memory.resume(...given)),
      abort: (...given) => noted(memory.abort(...given)),
      setBudget: (...given) => noted(memory.setBudget(...given)),
      claimCall: (...given) => noted(memory.claimCall(...given)),
      postCallEnd: (...given) => noted(memory.postCallEnd(...given)),
      fireTimer: (...given) => noted(memory.fireTimer(...given)),
      decide: (...given) => noted(memory.decide(...given)),
      acquire: (...given) => noted(memory.acquire(...given)),
      release: (...given) => noted(memory.release(...given)),
      readJournal: async (key, fromSeq) => this.#cursors.outwardRows(await memory.readJournal(key, fromSeq)),
      treeHead: async (tenant, root) => {
        const head = await memory.treeHead(tenant, root);
        return head && { ...head, cursor: this.#cursors.outward(head.cursor) };
      },
      readTree: async (tenant, root, after, limit) =>
        this.#cursors.outwardRows(await memory.readTree(tenant, root, this.#cursors.inward(after), limit)),
    };
  }
}

async function agentsOf(stores: Stores, { tenant, agentId }: AgentKey): Promise<AgentRecord[]> {
  return await stores.listAgents({ tenant, rootAgentId: agentId, limit: ALL });
}

/**
 * A tree that is copied into memory gets new cursors there, from 1 on. Clients hold the old ones, so outside of this
 * class its rows keep them, and new rows continue after them.
 */
class CopiedCursors {
  /** From a cursor here to the cursor that it was copied with, in order. */
  readonly #copied: ReadonlyMap<number, number>;
  readonly #lastHere: number;
  readonly #lastThere: number;

  constructor(here: readonly JournalRow[], there: readonly JournalRow[]) {
    this.#copied = new Map(here.map((row, index) => [row.cursor, there[index]?.cursor ?? 0]));
    this.#lastHere = here.at(-1)?.cursor ?? 0;
    this.#lastThere = there.at(-1)?.cursor ?? 0;
  }

  /** The cursor that clients see. 0, which is no row, stays 0. */
  outward(cursor: number): number {
    return cursor > this.#lastHere ? cursor - this.#lastHere + this.#lastThere : (this.#copied.get(cursor) ?? 0);
  }

  outwardOf(outcome: Committed): Committed {
    const { cursor, follows } = outcome;
    return {
      ...outcome,
      cursor: this.outward(cursor),
      follows: follows === undefined ? undefined : this.outward(follows),
    };
  }

  /** The last row here that is not after a client's cursor. */
  inward(cursor: number): number {
    if (cursor >= this.#lastThere) return cursor - this.#lastThere + this.#lastHere;
    let found = 0;
    for (const [here, there] of this.#copied) if (there <= cursor) found = here;
    return found;
  }

  outwardRows(rows: readonly JournalRow[]): JournalRow[] {
    return rows.map((row) => ({ ...row, cursor: this.outward(row.cursor) }));
  }
}

/**
 * Other processes see a held tree as it was last saved, and send turns, decisions, pauses and aborts to that copy.
 * Those calls were answered, so they must reach the current tree.
 */
class PassedCommands {
  readonly #known = new Map<string, Set<string>>();

  /** Items that the current tree already has. */
  get known(): KnownItems {
    return this.#known;
  }

  /** Notes the items of the tree as it is now stored. */
  note(tree: StoredTree): void {
    this.#known.clear();
    for (const { record, inbox } of tree.agents) for (const { key } of inbox) this.#isNew(record.agentId, key);
  }

  /** Gives the new items of `saved` to `held`. Returns whether there were any. */
  async pass(saved: Stores, held: Stores, { tenant, agentId: rootAgentId }: AgentKey): Promise<boolean> {
    let isAny = false;
    for (const record of await saved.listAgents({ tenant, rootAgentId, limit: ALL })) {
      const key = { tenant, agentId: record.agentId };
      for (const item of await saved.inbox(key)) {
        if (!this.#isNew(record.agentId, item.key)) continue;
        await give(held, record, item);
        isAny = true;
      }
    }
    return isAny;
  }

  #isNew(agentId: string, itemKey: string): boolean {
    const keys = this.#known.get(agentId) ?? new Set();
    if (keys.has(itemKey)) return false;
    this.#known.set(agentId, keys.add(itemKey));
    return true;
  }
}

async function give(held: Stores, saved: AgentRecord, item: InboxItem): Promise<void> {
  const { tenant, agentId } = saved;
  const key = { tenant, agentId };
  switch (item.kind) {
    case "turn": {
      const { input, actorId, limits, clientTools, trace, at, turnKey } = item;
      const command = { input, actorId, limits, clientTools, trace, ifBusy: "queue" } as const;
      const { type } = await held.openTurn(key, { ...command, key: turnKey }, at);
      // Here the key has come to name another turn since the last save.
      if (type === "conflict") await held.openTurn(key, command, at);
      return;
    }
    case "decision": {
      const { requestId, decision, at, decisionKey } = item;
      const { type } = await held.decide(key, requestId, decision, at, { key: decisionKey });
      // Here the key has come to name something else since the last save.
      if (type === "taken") await held.decide(key, requestId, decision, at);
      return;
    }
    case "pause":
      // Descendants have the item without the mark; pausing `held` posts to them again.
      if (saved.pause) await held.pause(key, item.by, item.at, { now: item.now });
      return;
    case "resume":
      await held.resume(key, item.by, item.at);
      return;
    case "abort": {
      const { turnId, by, reason, stopReason, at } = item;
      await held.abort(key, { turnId, by, reason, stopReason }, at);
      return;
    }
    case "budget.changed":
      if (item.change) {
        const { by, limits, before } = item.change;
        await held.setBudget(key, { by, change: changeBetween(before, limits) }, item.at);
      }
      return;
    case "child.ended":
    case "child.reported":
    case "call.ended":
    case "budget.freed":
    case "budget.warning":
      // Only owners post these, and this process is the owner.
      return;
    case "lease.wanted":
      // The tree stays here for as long as its handle holds it.
      return;
    default:
      item satisfies never;
  }
}
