import { openAccount, reserve, settle } from "../../src/budget/index.ts";
import { askOf, modelRequested, note, reservationIn, settled } from "../../test/contracts/entry-fixtures.ts";
import { NOW, ROOT, TENANT, TURN } from "../../test/contracts/names.ts";
import { accountOf, type Owner, openAgent } from "../../test/contracts/stores-fixtures.ts";
import { openChild } from "../../test/contracts/tree-fixtures.ts";
import { type Side, timed } from "../study.ts";
import { openStores, type StoreKind } from "./open-stores.ts";

const USED = 120;
const RESERVED = 500;

interface CommitOptions {
  readonly times: number;
  /** If false, the commits have entries without effect instead of the reservation and the settlement. */
  readonly isReserving: boolean;
}

/** Two commits through the stores' port: the intent with its reservation, and the outcome with its settlement. */
export function commitSide(kind: StoreKind, { times, isReserving }: CommitOptions): Side {
  return {
    name: `commits on ${kind}${isReserving ? "" : ", no reservation"}`,
    prepare: async () => {
      const { stores, remove } = await openStores(kind);
      const child = await openChild(await openAgent(stores, limited), "kid", limited.budget);
      const work = isReserving ? reserveAndSettle : commitNotes;
      const usedTokens = async (): Promise<number> => {
        const accounts = await stores.accounts(TENANT, ROOT);
        return accounts.find(({ id }) => id === `agent:${ROOT}`)?.used.tokens ?? 0;
      };
      return {
        sample: async () => {
          const before = await usedTokens();
          const { elapsedMs, processorMs } = await timed(async () => {
            for (let time = 0; time < times; time += 1) await work(child);
          });
          const expected = isReserving ? USED * times : 0;
          if ((await usedTokens()) - before !== expected)
            throw new Error("reserve-settle: the accounts do not add up.");
          return { value: (elapsedMs / times) * 1000, processorMs: processorMs / times };
        },
        close: async () => {
          await stores.close();
          await remove();
        },
      };
    },
  };
}

const enough = { maxTokens: 1_000_000_000_000 };
const limited = { budget: enough, turnBudget: enough };

async function reserveAndSettle(owner: Owner): Promise<void> {
  const { agentId } = owner.key;
  const turnId = `${agentId}#1`;
  const request = modelRequested({ agentId, accountId: `turn:${turnId}` }, { turnId });
  const reservation = reservationIn(await owner.commit({ entries: [request] }));
  await owner.commit(settled(reservation, { tokens: USED }));
}

async function commitNotes(owner: Owner): Promise<void> {
  await owner.commit({ entries: [note("asked")] });
  await owner.commit({ entries: [note("answered")] });
}

/** The pure functions that the stores apply, on a chain of four accounts. */
export function arithmeticSide(times: number): Side {
  return {
    name: "arithmetic",
    prepare: async () => {
      const ids = [`turn:${ROOT}~kid#1`, `agent:${ROOT}~kid`, `turn:${TURN}`, `agent:${ROOT}`];
      let chain = ids.map((id, place) => openAccount(accountOf(id, enough, { parentId: ids[place + 1] ?? null })));
      const ask = askOf({ accountId: ids[0] ?? "" });
      const once = (): void => {
        const outcome = reserve(chain, ask, { now: NOW, steady: NOW });
        if (!outcome.granted) throw new Error("reserve-settle: a reservation was refused.");
        const [move] = settled(outcome.reservation, { tokens: USED }).moves;
        if (move?.type === "settle") chain = settle(outcome.accounts, move.settlement);
      };
      return { sample: () => sampleOf(times, once), close: async () => undefined };
    },
  };
}

/** The minimal equivalent: four objects, with a check and two numbers each. */
export function objectSide(times: number): Side {
  return {
    name: "bare objects",
    prepare: async () => {
      const chain = [0, 1, 2, 3].map(() => ({ max: enough.maxTokens, used: 0, reserved: 0 }));
      const once = (): void => {
        for (const { max, used, reserved } of chain) {
          if (used + reserved + RESERVED > max) throw new Error("The budget is spent.");
        }
        for (const account of chain) account.reserved += RESERVED;
        for (const account of chain) {
          account.reserved -= RESERVED;
          account.used += USED;
        }
      };
      return { sample: () => sampleOf(times, once), close: async () => undefined };
    },
  };
}

async function sampleOf(times: number, once: () => void) {
  const { elapsedMs, processorMs } = await timed(() => {
    for (let time = 0; time < times; time += 1) once();
  });
  return { value: (elapsedMs / times) * 1000, processorMs: processorMs / times };
}
