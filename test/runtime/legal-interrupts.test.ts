import { expect, it } from "vitest";
import { amount, rows, sweep } from "../support/full.ts";
import { RandomPlay } from "../support/random-play.ts";
import type { Action, Deed, StrikePoint, PlannedCall, ToolName, TurnPlan } from "../support/random-turns.ts";
import { emptyTally } from "../support/random-world.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { far } from "../support/under-way.ts";
import type { Stores } from "../../src/stores/index.ts";

const call = (name: ToolName, does: Deed = "succeed", loops = 0): PlannedCall => ({
  name,
  does,
  loops,
  arguments: "right",
});

/** A round with calls of every kind: some are refused, wait, run and are settled at the same time. */
const plan: TurnPlan = {
  history: { kind: "react", size: 4 },
  compaction: null,
  budget: {},
  atATime: 1,
  answers: [
    {
      kind: "calls",
      calls: [
        call("look"),
        call("approve"),
        call("nosuch"),
        call("look", "artifact", 1),
        call("list_tool_calls"),
        call("login"),
        call("keyed", "generate", 1),
        call("helper"),
        call("helper"),
      ],
      hasText: false,
      ids: "own",
      loops: 0,
    },
  ],
  hooks: [],
  strikes: [],
  decisions: [],
  turns: [{ input: "text", before: "nothing" }],
};

/** The same plan with a hook that reviews each result. */
const reviewed: TurnPlan = { ...plan, hooks: [{ hook: "afterEachTool", deeds: ["nothing"], loops: 2 }] };

/** The quick run plays only `reviewed`, which includes the other plan. */
const plans = rows(Object.entries({ plan, reviewed }), ([kind]) => kind === "reviewed");

/** Milliseconds. A turn is played once per hit of a fault point: on Redis, on a busy machine, that takes over a minute. */
const SWEEP_MS = 240_000;

/** The latency of the stores: none, or that of a network. */
const distances = { near: (stores: Stores) => stores, far };

describeRuntimes(
  "an interrupt",
  (stage) => {
    it.each([
      "commit.before",
      "commit.after",
      "commit.acknowledged",
      "model.result",
      "call.gated",
      "tool.intent",
      "tool.result",
      "generate.intent",
      "request.opened",
    ] satisfies StrikePoint[])(
      `H10, F22, F23: at ${sweep.told} of %s leaves each call one result`,
      async (place) => {
        const look = stage().look();
        let played = 0;
        for (const [kind, base] of plans) {
          for (const action of ["abort", "supersede", "pause", "pauseNow", "kill"] satisfies Action[]) {
            for (let hit = 1; hit <= sweep.most; hit += 1) {
              const tally = emptyTally();
              const struck = { ...base, strikes: [{ place, hit, action }] };
              for (const [distance, through] of Object.entries(distances)) {
                const agentId = `${kind}-${action}-${hit}-${distance}`;
                const faults = await new RandomPlay(stage(), look, struck, { agentId, tally, through }).play();
                expect({ place, hit, action, kind, distance, faults }).toMatchObject({ faults: [] });
              }
              if (tally.acted[action] === undefined) break;
              played += 1;
            }
          }
        }
        expect(played).toBeGreaterThan(amount(5, 4));
      },
      SWEEP_MS,
    );
  },
  ["memory"],
);
