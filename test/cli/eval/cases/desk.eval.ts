// Twenty cases of the desk, offline. `TROUPE_TEST_FAULT` makes the desk a broken one, which they must catch.
import { describe, expect, test } from "vitest";
import { judge, runCase } from "../../../../src/testing/index.ts";
import { desk, type Fault, judgeModel, prices } from "../../../testing/evals-cast.ts";

const fault = (process.env["TROUPE_TEST_FAULT"] ?? "none") as Fault;
const orders = Array.from({ length: 18 }, (_, index) => `${index + 1}`);

describe("desk", () => {
  test.for(orders)("refunds order %s once", async (order) => {
    const result = await runCase(desk(fault), `Refund order ${order}.`, { prices });
    expect(result).toEndWith("completed");
    expect(result).toHaveCalledTools(["look", "refund"].map((name) => ({ name, args: { order } })));
    expect(result).toMatchOutput({ order, refunded: 40 });
    expect(result).toTakeAtMost({ steps: 3, tokens: 1_000 });
    expect(result).toCostAtMost(0.01);
  });

  test("stays in its budget", async () => {
    const result = await runCase(desk("talks on"), "Refund order 1.", { prices, budget: { maxSteps: 4 } });
    expect(result).toEndWith("steps_limit");
    expect(result).toTakeAtMost({ steps: 4 });
  });

  test("convinces the judge", async () => {
    const result = await runCase(desk(fault), "Refund order 1.", { prices });
    const score = result.output?.refunded === 40 ? 1 : 0;
    const model = judgeModel([{ number: 1, reason: `It refunded ${result.output?.refunded}.`, score }]);
    await expect(result).toSatisfyJudge("It refunds 40 dollars.", { model, prices });
    expect((await judge(result, "It refunds 40 dollars.", { model, prices })).score).toBe(1);
  });
});
