import { afterEach, beforeEach, describe } from "vitest";
import type { Stores } from "../../src/stores/index.ts";
import { accountsContract } from "./stores-accounts.contract.ts";
import { artifactsContract, clearingContract } from "./stores-artifacts.contract.ts";
import { backgroundContract } from "./stores-background.contract.ts";
import { callEndsContract } from "./stores-call-ends.contract.ts";
import { claimsContract } from "./stores-claims.contract.ts";
import { commandsContract } from "./stores-commands.contract.ts";
import { commitContract } from "./stores-commit.contract.ts";
import { decideContract, decisionKeysContract } from "./stores-decide.contract.ts";
import { definitionsContract } from "./stores-definitions.contract.ts";
import { deletionContract } from "./stores-deletion.contract.ts";
import { intentsContract } from "./stores-intents.contract.ts";
import { keysContract } from "./stores-keys.contract.ts";
import { leasesContract } from "./stores-leases.contract.ts";
import { marksContract } from "./stores-marks.contract.ts";
import { outerContract } from "./stores-outer.contract.ts";
import { pagesContract } from "./stores-pages.contract.ts";
import { pausingContract } from "./stores-pausing.contract.ts";
import { queuedContract } from "./stores-queued.contract.ts";
import { readsContract } from "./stores-reads.contract.ts";
import { requestsContract } from "./stores-requests.contract.ts";
import { schedulesContract } from "./stores-schedules.contract.ts";
import { seedsContract } from "./stores-seeds.contract.ts";
import { spawnContract } from "./stores-spawn.contract.ts";
import { queuedAbortContract, supersedeContract } from "./stores-supersede.contract.ts";
import { timersContract } from "./stores-timers.contract.ts";
import { projectionsContract, treePlacesContract } from "./stores-tree-cursors.contract.ts";
import { treesContract } from "./stores-trees.contract.ts";
import { turnKeysContract, turnsContract } from "./stores-turns.contract.ts";
import { waitingContract } from "./stores-waiting.contract.ts";
import { unattendedContract } from "./stores-unattended.contract.ts";
import { webhooksContract } from "./stores-webhooks.contract.ts";
import { setBudgetContract } from "./stores-set-budget.contract.ts";
import { warningsContract } from "./stores-warnings.contract.ts";
import { steerContract } from "./stores-steer.contract.ts";

/** The contract of every stores adapter; `open` returns empty stores. */
export function storesContract(name: string, open: () => Stores | Promise<Stores>): void {
  describe(`${name} stores`, () => {
    let stores: Stores;
    beforeEach(async () => {
      stores = await open();
    });
    afterEach(async () => {
      await stores.close();
    });
    const subject = (): Stores => stores;
    describe("commit", () => {
      commitContract(subject);
    });
    describe("deletion", () => {
      deletionContract(subject);
    });
    describe("intents", () => {
      intentsContract(subject);
    });
    describe("accounts", () => {
      accountsContract(subject);
    });
    describe("accounts above the roots", () => {
      outerContract(subject);
    });
    describe("waiting", () => {
      waitingContract(subject);
    });
    describe("held budget", () => {
      claimsContract(subject);
    });
    describe("warnings", () => {
      warningsContract(subject);
    });
    describe("definitions", () => {
      definitionsContract(subject);
    });
    describe("spawning", () => {
      spawnContract(subject);
    });
    describe("background children", () => {
      backgroundContract(subject);
    });
    describe("seeded agents", () => {
      seedsContract(subject);
    });
    describe("commands", () => {
      commandsContract(subject);
    });
    describe("turns", () => {
      turnsContract(subject);
    });
    describe("turn keys", () => {
      turnKeysContract(subject);
    });
    describe("pausing and aborting", () => {
      marksContract(subject);
    });
    describe("leases", () => {
      leasesContract(subject);
    });
    describe("queued calls", () => {
      queuedContract(subject);
      callEndsContract(subject);
    });
    describe("agents without an owner", () => {
      unattendedContract(subject);
    });
    describe("timers", () => {
      timersContract(subject);
    });
    describe("reading", () => {
      readsContract(subject);
    });
    describe("pages", () => {
      pagesContract(subject);
    });
    describe("requests", () => {
      requestsContract(subject);
    });
    describe("deciding", () => {
      decideContract(subject);
    });
    describe("decision keys", () => {
      decisionKeysContract(subject);
    });
    describe("artifacts", () => {
      artifactsContract(subject);
    });
    describe("clearing", () => {
      clearingContract(subject);
    });
    describe("superseding", () => {
      supersedeContract(subject);
    });
    describe("steering", () => {
      steerContract(subject);
    });
    describe("queued turns", () => {
      queuedAbortContract(subject);
    });
    describe("changing a budget", () => {
      setBudgetContract(subject);
    });
    describe("pausing", () => {
      pausingContract(subject);
    });
    describe("exporting and importing trees", () => {
      treesContract(subject);
      treePlacesContract(subject);
    });
    describe("projections", () => {
      projectionsContract(subject);
    });
    describe("webhooks", () => {
      webhooksContract(subject);
    });
    describe("schedules", () => {
      schedulesContract(subject);
    });
    describe("keys", () => {
      keysContract(subject);
    });
  });
}
