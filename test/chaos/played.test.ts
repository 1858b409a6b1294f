import { expect, it } from "vitest";
import { played } from "../../chaos/played.ts";
import { failureOf, reportOf } from "../../chaos/scenario.ts";

const options = { seed: 7, short: true, rounds: undefined, folder: "/nowhere", progress: () => undefined };

it("counts a scenario that throws as violated, with its message, and reports others unchanged", async () => {
  const broken = { name: "F99", title: "breaks off", run: () => Promise.reject(new TypeError("no such worker")) };
  const report = await played(broken, options);
  expect(report).toMatchObject({ name: "F99", seed: 7, operations: 1, succeeded: 0, violations: 1 });
  expect(report.firstViolations).toEqual([expect.stringMatching(/^it broke off: TypeError: no such worker/)]);
  expect(failureOf(report)).toBe("1 violations");
  const fine = reportOf({ name: "F98", seed: 7 }, { operations: 3, succeeded: 3, violations: [] });
  expect(await played({ name: "F98", title: "holds", run: async () => fine }, options)).toBe(fine);
});
