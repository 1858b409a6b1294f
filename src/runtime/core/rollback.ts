import { type Clock, untilReached } from "../../base/index.ts";
import { LeaseLostError, StoreRolledBackError } from "../../errors/index.ts";
import { type AgentKey, type AgentRecord, rootOf } from "../../state/index.ts";
import { deletedError, type RolledBackTree } from "../../stores/index.ts";
import type { Activation } from "../agent/activation.ts";
import type { Watch } from "../placement/watched-work.ts";
import type { RuntimeStores } from "../unsaved/unsaved-stores.ts";

const PAGE = 500;

/** The services of a process that recovering rolled back trees needs. */
export interface RollbackDependencies {
  readonly stores: RuntimeStores;
  readonly tenant: string;
  readonly processId: string;
  readonly clock: Clock;
  /** Aborted when the runtime was shut down. */
  readonly closed: AbortSignal;
  readonly live: {
    all(): readonly Activation[];
    present(key: AgentKey): Promise<Activation | undefined>;
    isOthers(key: AgentKey): boolean;
    activateUnlessShutDown(key: AgentKey): Promise<unknown>;
    notify(agentIds: readonly string[]): void;
    readonly passivation: {
      isPinned(key: AgentKey): boolean;
      keys(): readonly AgentKey[];
      forget(key: AgentKey): void;
    };
    readonly watch: Watch;
  };
}

/**
 * Continues from the stored state after the stores were rolled back: agents in memory are ahead of it, and this process may have
 * released leases that are stored again.
 */
export function watchRolledBackTrees(dependencies: RollbackDependencies): void {
  const stop = dependencies.stores.onRolledBack((found) => {
    if (found.tenant !== dependencies.tenant) return;
    recoverTree(dependencies, found).catch((error: unknown) => {
      if (dependencies.closed.aborted) return;
      process.emitWarning(
        `agents of ${found.rootAgentId} could not be recovered after the stores were rolled back: ${String(error)}`,
      );
    });
  });
  dependencies.closed.addEventListener("abort", stop, { once: true });
}

async function recoverTree(dependencies: RollbackDependencies, found: RolledBackTree): Promise<void> {
  const { live, stores } = dependencies;
  const { rootAgentId } = found;
  if (found.deletedAt !== undefined) return forgetDeleted(dependencies, rootAgentId, found.deletedAt);
  const here = live.all().filter(({ key, identity }) => identity.rootAgentId === rootAgentId && !stores.isUnsaved(key));
  for (const activation of here) {
    const message = `the stores have lost acknowledged writes of the tree of ${rootAgentId}`;
    const details = { agentId: activation.key.agentId };
    activation.discard(new LeaseLostError(message, { cause: new StoreRolledBackError(message, { details }) }));
  }
  const { clock, closed } = dependencies;
  const left = await untilReached(() => giveBack(dependencies, rootAgentId), {
    clock,
    random: Math.random,
    signal: closed,
  });
  const keys = new Map([...here.map(({ key }) => key), ...left].map((key) => [key.agentId, key]));
  for (const [agentId, key] of keys) {
    const comesBack = live.passivation.isPinned(key) && !live.isOthers(key);
    if (comesBack) void live.watch(agentId, "be activated", () => live.activateUnlessShutDown(key));
    else live.notify([agentId]);
  }
}

/** Gives up the agents of a tree that was deleted. Their leases are gone. */
function forgetDeleted({ live }: RollbackDependencies, rootAgentId: string, deletedAt: number): void {
  const cause = deletedError(rootAgentId, { deletedAt });
  for (const activation of live.all()) {
    if (activation.identity.rootAgentId === rootAgentId)
      activation.discard(new LeaseLostError(cause.message, { cause }));
  }
  for (const key of live.passivation.keys()) {
    if (rootOf(key.agentId) === rootAgentId) live.passivation.forget(key);
  }
}

/** Releases leases of this process for agents that it does not run, so that any process can activate them. */
async function giveBack({ stores, live, tenant, processId, clock }: RollbackDependencies, rootAgentId: string) {
  const left: AgentKey[] = [];
  for (let after: string | undefined; ; ) {
    const page: AgentRecord[] = await stores.listAgents({ tenant, rootAgentId, limit: PAGE, after });
    for (const { agentId } of page) {
      const key = { tenant, agentId };
      const holder = await stores.holder(key);
      // An agent whose activation has just started has a later epoch.
      if (holder?.process.processId !== processId || (await live.present(key))) continue;
      if (await stores.release(key, holder.epoch, { as: "leaving", steady: clock.elapsed() })) left.push(key);
    }
    after = page.at(-1)?.agentId;
    if (page.length < PAGE || after === undefined) return left;
  }
}
