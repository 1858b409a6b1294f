import { randomUUID } from "node:crypto";
import { NotFoundError } from "../../errors/index.ts";
import type { Queues } from "../../queues/index.ts";
import {
  type Runtime,
  type TreeWatcher,
  type TreeWatching,
  watchStoredTree,
  watchTreeOf,
} from "../../runtime/index.ts";
import { type AgentKey, type AgentRecord, rootOf } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import type { Actor } from "./act.ts";
import { Journals } from "./journals.ts";
import { RunDigests } from "./run-digests.ts";

/** Stores that a feed reads, and this process's runtime on them, if there is one. */
export interface FeedSource {
  /** The stores to read. */
  readonly stores: Stores;
  /** The tenant whose runs to show. */
  readonly tenant: string;
  /** The runtime of this process on the stores. Absent if only other processes use them. */
  readonly runtime?: Runtime | undefined;
  /** The queues whose counts are shown. Default: none. */
  readonly queues?: Queues | undefined;
  /** Decides, pauses and talks. Absent if the runs are read-only. */
  readonly actor?: Actor | undefined;
  /** Whether the stores' live channel has answers while they are written, although this process does not run the agents. Default: as the stores do. */
  readonly isWritten?: boolean | undefined;
  /** Whether the runs were loaded from a file. */
  readonly isFile?: boolean | undefined;
}

/** The sources of one feed. Owns: their list. Does not own: stores, runtimes and queues. */
export class Sources {
  readonly #sources: FeedSource[] = [];
  readonly #processId = `inspector-${randomUUID()}`;
  readonly #journals = new Journals();
  readonly digests = new RunDigests();

  /** Adds a source; the returned function removes it. */
  add(source: FeedSource): () => void {
    this.#sources.push(source);
    return () => {
      const index = this.#sources.indexOf(source);
      if (index >= 0) this.#sources.splice(index, 1);
      this.#journals.forget(source.stores);
    };
  }

  /** Drops what is cached of a run that was deleted. */
  forgetRun({ stores, tenant, runId }: Pick<RunSource, "stores" | "tenant" | "runId">): void {
    this.#journals.forgetRun(stores, { tenant, agentId: runId });
    this.digests.forget(stores, tenant, runId);
  }

  all(): readonly FeedSource[] {
    return this.#sources;
  }

  /** Whether a source has the run. */
  async has(runId: string): Promise<boolean> {
    return (await this.#find(runId)) !== undefined;
  }

  /** Throws `NotFoundError` if no source has the run. */
  async ofRun(runId: string): Promise<RunSource> {
    const found = await this.#find(runId);
    if (found) return found;
    throw new NotFoundError(`there is no run "${runId}"`);
  }

  async #find(runId: string): Promise<RunSource | undefined> {
    for (const source of this.#sources) {
      const root = await source.stores.readAgent({ tenant: source.tenant, agentId: runId });
      if (root && root.rootAgentId === runId)
        return { ...source, runId, root, journals: this.#journals, digests: this.digests };
    }
    return undefined;
  }

  /** Throws `NotFoundError` if no source has the agent. */
  async ofAgent(agentId: string): Promise<RunSource> {
    return await this.ofRun(rootOf(agentId));
  }

  watch({ runtime, stores, tenant, runId }: RunSource, watcher: TreeWatcher): TreeWatching {
    if (runtime?.isOpen === true) return watchTreeOf(runtime, runId, watcher);
    return watchStoredTree({ stores, tenant, processId: this.#processId }, runId, watcher);
  }
}

/** The actor of a source; `undefined` if it has none or its runtime is shut down. */
export function actorOf({ actor, runtime }: FeedSource): Actor | undefined {
  return runtime?.isOpen === false ? undefined : actor;
}

/** The source of one run. */
export interface RunSource extends FeedSource {
  readonly runId: string;
  readonly root: AgentRecord;
  /** The cache through which the journals of its agents are read. */
  readonly journals: Journals;
  readonly digests: RunDigests;
}

/** Throws `NotFoundError` if the agent does not belong to the run. */
export async function agentOf({ stores, tenant, runId }: RunSource, agentId: string): Promise<AgentRecord> {
  const record = rootOf(agentId) === runId ? await stores.readAgent({ tenant, agentId }) : undefined;
  if (record) return record;
  throw new NotFoundError(`run "${runId}" has no agent "${agentId}"`);
}

export function agentKeyIn({ tenant }: Pick<FeedSource, "tenant">, agentId: string): AgentKey {
  return { tenant, agentId };
}
