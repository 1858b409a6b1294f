import { expect, it } from "vitest";
import { replay } from "../../src/testing/replay.ts";
import { randomCases } from "../support/full.ts";
import { playPrograms } from "../support/played-programs.ts";

const cases = randomCases(1_000, 60);
const CASES_OF_PART = 30;
const parts = Array.from({ length: Math.ceil(cases / CASES_OF_PART) }, (_, part) => part);

it.each(parts)("random programs are replayed without a difference: part %i", { timeout: 120_000 }, async (part) => {
  const played = await playPrograms({ seed: 41_000 + part, count: CASES_OF_PART });
  const faults: string[] = [];
  let requests = 0;
  for (const agentId of played.roots) {
    const result = await replay({ stores: played.stores, agentId }, { agents: played.agents });
    requests += result.requests;
    if (!result.isEqual) faults.push(`${JSON.stringify(result.divergedAt)} ${result.part}\n${result.diff}`);
  }
  await played.close();
  expect(faults).toEqual([]);
  expect(requests).toBeGreaterThan(CASES_OF_PART);
});
