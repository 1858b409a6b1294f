import { expect, it } from "vitest";
import { combinedRows, rows } from "../support/full.ts";
import { commands, openMarkScene, situations, stuckIn } from "../support/mark-scenes.ts";
import { describeRuntimes, type Stage } from "../support/runtimes.ts";

const cases = Object.keys(situations).map((situation) => ({ situation }));

const singles = combinedRows(cases.flatMap((one) => Object.keys(commands).map((command) => ({ ...one, command }))));
const pairs = combinedRows(cases.flatMap((one) => Object.keys(commands).map((first) => ({ ...one, first }))));

/** All commands; in the quick run a third of them, a different third for each pair. */
function secondsOf(pair: (typeof pairs)[number]): readonly string[] {
  const start = pairs.indexOf(pair);
  return rows(Object.keys(commands), (_command, index) => (index + start) % 3 === 0);
}

/** Plays the commands one after the other. Returns the parts of the agent that are stuck afterwards. */
async function faultsAfter(stage: Stage, situation: string, given: readonly string[]) {
  const scene = await openMarkScene(stage, ["m", ...given].join("-").replaceAll(" ", "-"));
  for (const play of situations[situation] ?? []) await play(scene);
  for (const command of given) await commands[command]?.(scene);
  const stuck = await stuckIn(scene);
  await scene.runtime.shutdown();
  return stuck;
}

describeRuntimes("every command in every situation", (stage) => {
  it.each(singles)("$situation: $command", async ({ situation, command }) => {
    expect(await faultsAfter(stage(), situation, [command])).toEqual([]);
  });
});

describeRuntimes(
  "two commands in every situation",
  (stage) => {
    it.each(pairs)("$situation: $first, and another one", async (pair) => {
      const { situation, first } = pair;
      const stuck: Record<string, string[]> = {};
      for (const second of secondsOf(pair)) {
        const faults = await faultsAfter(stage(), situation, [first, second]);
        if (faults.length > 0) stuck[second] = faults;
      }
      expect(stuck).toEqual({});
    });
  },
  ["memory"],
);
