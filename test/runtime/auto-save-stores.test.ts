import { beforeEach, describe } from "vitest";
import { systemClock } from "../../src/base/index.ts";
import { unsavedStores } from "../../src/runtime/unsaved/unsaved-stores.ts";
import { memoryStores, type Stores } from "../../src/stores/index.ts";
import { storesContract } from "../contracts/stores.contract.ts";
import { accountsContract } from "../contracts/stores-accounts.contract.ts";
import { artifactsContract, clearingContract } from "../contracts/stores-artifacts.contract.ts";
import { commandsContract } from "../contracts/stores-commands.contract.ts";
import { commitContract } from "../contracts/stores-commit.contract.ts";
import { decideContract } from "../contracts/stores-decide.contract.ts";
import { here } from "../contracts/stores-fixtures.ts";
import { intentsContract } from "../contracts/stores-intents.contract.ts";
import { keysContract } from "../contracts/stores-keys.contract.ts";
import { marksContract } from "../contracts/stores-marks.contract.ts";
import { pausingContract } from "../contracts/stores-pausing.contract.ts";
import { readsContract } from "../contracts/stores-reads.contract.ts";
import { requestsContract } from "../contracts/stores-requests.contract.ts";
import { spawnContract } from "../contracts/stores-spawn.contract.ts";
import { queuedAbortContract, supersedeContract } from "../contracts/stores-supersede.contract.ts";
import { timersContract } from "../contracts/stores-timers.contract.ts";
import { treesContract } from "../contracts/stores-trees.contract.ts";

const options = { clock: systemClock, leaseMs: 10_000 };

storesContract("unsaved trees, none of them in memory:", () => unsavedStores(memoryStores(), options));

/** All contracts except other processes' leases: no other process reaches trees in memory. */
const contracts: readonly ((subject: () => Stores) => void)[] = [
  accountsContract,
  artifactsContract,
  clearingContract,
  commandsContract,
  commitContract,
  decideContract,
  intentsContract,
  keysContract,
  marksContract,
  pausingContract,
  queuedAbortContract,
  readsContract,
  requestsContract,
  spawnContract,
  supersedeContract,
  timersContract,
  treesContract,
];

/** Either all trees or half of them, chosen by the length of their names, are in memory. */
describe.each(["all", "half"])("unsaved trees, %s of them in memory:", (share) => {
  let stores: Stores;
  beforeEach(async () => {
    const trees = unsavedStores(memoryStores(), options);
    await trees.registerProcess(here, 0);
    const createAgent: Stores["createAgent"] = async (identity, account) => {
      const { tenant, rootAgentId } = identity;
      const isHeld = share === "all" || rootAgentId.length % 2 === 0;
      if (isHeld) await trees.keepUnsaved({ tenant, agentId: rootAgentId });
      return await trees.createAgent(identity, account);
    };
    stores = new Proxy(trees, {
      get: (all, name) => (name === "createAgent" ? createAgent : Reflect.get(all, name)),
    });
  });
  describe.each(contracts.map((contract) => ({ name: contract.name, contract })))("$name", ({ contract }) => {
    contract(() => stores);
  });
});
