// Evals of the agent in desk.ts, with the cases of refunds.yaml. `troupe eval` runs them, and so does vitest.
import "troupe/testing/matchers";
import { readCases, runCase, scriptedModel } from "troupe/testing";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { agent } from "./desk.ts";

const cases = await readCases(new URL("./refunds.yaml", import.meta.url), {
  schema: z.object({ name: z.string(), input: z.string(), expected: z.object({ isRefunded: z.boolean() }) }),
});

describe("refunds", () => {
  test.for(cases)("$name", async ({ input, expected }) => {
    const result = await runCase(agent, input);
    expect(result).toEndWith("completed");
    expect(result).toMatchOutput(expected);
    expect(result).toHaveCalledTools(expected.isRefunded ? ["look", "refund"] : ["look"]);
    expect(result).toTakeAtMost({ steps: 3, tokens: 2_000 });
  });

  test("names what happens with the money", async () => {
    const result = await runCase(agent, "Order 7 arrived broken.");
    // Stands for a model that judges.
    const criteria = [{ number: 1, reason: "The answer names the money.", score: 1 }];
    const model = scriptedModel(JSON.stringify({ criteria }));
    await expect(result).toSatisfyJudge("The answer names what happens with the money.", { model });
  });
});
