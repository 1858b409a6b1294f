// A process that opens the turns of schedules; its clock moves by messages of the test. Arguments: SQLite file or Redis URL, and prefix.
import { createRuntime, defineAgent } from "../../src/index.ts";
import { armFaultPoints } from "../../src/base/index.ts";
import { redisStores } from "../../src/stores/redis.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { createFakeClock, type FakeClock, scriptedModel } from "../../src/testing/index.ts";
import { loopTurns } from "./journal-probes.ts";
import { noted } from "./under-way.ts";

/** What the test asks for; each is answered when the work of its time is done. */
export type DaysMessage =
  | { readonly type: "start"; readonly now: number; readonly sleptMs: number }
  | { readonly type: "advance"; readonly ms: number; readonly steps: number }
  | { readonly type: "sleep"; readonly ms: number }
  | { readonly type: "arm"; readonly fault: string };

const [, , place = "", prefix] = process.argv;
let clock: FakeClock | undefined;

async function handle(message: DaysMessage): Promise<void> {
  switch (message.type) {
    case "start": {
      clock = createFakeClock(message.now - message.sleptMs);
      clock.jump(message.sleptMs);
      const stores = place.startsWith("redis:") ? redisStores({ url: place, prefix }) : sqliteStores(place);
      const desk = defineAgent({ name: "desk", model: scriptedModel(() => "done") });
      await createRuntime({ agents: [desk], stores: noted(stores), clock, leaseMs: 10_000 });
      return;
    }
    case "advance":
      for (let step = 0; step < message.steps; step += 1) {
        clock?.advance(message.ms);
        await loopTurns(4);
      }
      return;
    case "sleep":
      clock?.jump(message.ms);
      await loopTurns(4);
      return;
    case "arm":
      armFaultPoints(message.fault);
      return;
    default:
      message satisfies never;
  }
}

process.on("message", (message: DaysMessage) => {
  void handle(message).then(() => process.send?.("done"));
});
// The test has ended.
process.on("disconnect", () => process.exit());
process.send?.("ready");
