import { afterEach, beforeEach, describe } from "vitest";
import type { Stores } from "../../src/stores/index.ts";
import { accountsContract } from "./stores-accounts.contract.ts";
import { commandsContract } from "./stores-commands.contract.ts";
import { commitContract } from "./stores-commit.contract.ts";
import { intentsContract } from "./stores-intents.contract.ts";
import { keysContract } from "./stores-keys.contract.ts";
import { leasesContract } from "./stores-leases.contract.ts";
import { marksContract } from "./stores-marks.contract.ts";
import { readsContract } from "./stores-reads.contract.ts";
import { spawnContract } from "./stores-spawn.contract.ts";
import { timersContract } from "./stores-timers.contract.ts";

/** What every adapter of the stores must do; `open` gives an empty one. */
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
    describe("intents", () => {
      intentsContract(subject);
    });
    describe("accounts", () => {
      accountsContract(subject);
    });
    describe("spawning", () => {
      spawnContract(subject);
    });
    describe("commands", () => {
      commandsContract(subject);
    });
    describe("marks", () => {
      marksContract(subject);
    });
    describe("leases", () => {
      leasesContract(subject);
    });
    describe("timers", () => {
      timersContract(subject);
    });
    describe("reading", () => {
      readsContract(subject);
    });
    describe("keys", () => {
      keysContract(subject);
    });
  });
}
