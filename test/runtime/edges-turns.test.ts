import { expect, it } from "vitest";
import { arrivals } from "../support/edge-arrivals.ts";
import { casesOf, faultsOf } from "../support/edge-cases.ts";
import { deeds, edgeAgent } from "../support/edge-commits.ts";
import { combinedRows, rows } from "../support/full.ts";
import { describeRuntimes } from "../support/runtimes.ts";

describeRuntimes(
  "a turn that runs user code",
  (stage) => {
    it.each(combinedRows(casesOf(deeds, Object.keys(arrivals))))("$place $deed, $arrival", async (one) => {
      expect((await faultsOf(stage(), edgeAgent, one)).filter((fault) => fault !== undefined)).toEqual([]);
    });
  },
  rows(["memory", "memory, restored"], ["memory"]),
);

// A file stores the same rows; only what follows a restart differs.
describeRuntimes(
  "a turn that runs user code, in a file",
  (stage) => {
    const restarts = Object.keys(arrivals).filter((name) => /kill|shutdown/.test(name));
    it.each(combinedRows(casesOf(["nothing"], restarts)))("$place $deed, $arrival", async (one) => {
      expect((await faultsOf(stage(), edgeAgent, one)).filter((fault) => fault !== undefined)).toEqual([]);
    });
  },
  rows(["sqlite", "sqlite, restored"], ["sqlite, restored"]),
);
