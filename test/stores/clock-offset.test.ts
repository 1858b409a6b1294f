import { expect, it } from "vitest";
import { clockOffsetFor } from "../../src/stores/rules/processes.ts";
import type { ProcessRow } from "../../src/stores/rules/tables.ts";

const noon = Date.UTC(2026, 5, 1, 12);
const tenMinutes = 600_000;

function rowOf(row: Partial<ProcessRow>): ProcessRow {
  return { processId: "p", pid: 1, bootId: "boot/pid:[1]", startTime: null, heartbeatAt: 0, clockOffset: 0, ...row };
}

const fresh = { processId: "new", pid: 2, bootId: "boot/pid:[2]" };

it("starts with the current wall clock", () => {
  expect(5_000 + clockOffsetFor([], fresh, noon, 5_000)).toBe(noon);
});

it("is shared by all processes of a boot, also in another namespace, and after the clock was set", () => {
  const first = rowOf({ heartbeatAt: noon, clockOffset: noon - 5_000 });
  for (const set of [tenMinutes, 0, -tenMinutes]) {
    expect(65_000 + clockOffsetFor([first], fresh, noon + 60_000 + set, 65_000)).toBe(noon + 60_000);
  }
});

it("does not decrease over a restart of the machine, even if the wall clock does", () => {
  const before = rowOf({ bootId: "earlier/pid:[1]", heartbeatAt: noon, clockOffset: noon - 900_000 });
  expect(1_000 + clockOffsetFor([before], fresh, noon - tenMinutes, 1_000)).toBe(noon);
  expect(1_000 + clockOffsetFor([before], fresh, noon + tenMinutes, 1_000)).toBe(noon + tenMinutes);
});

it("is not adopted from a process with an injected clock", () => {
  const injected = rowOf({ heartbeatAt: noon, clockOffset: 0 });
  expect(5_000 + clockOffsetFor([injected], fresh, noon + 1, 5_000)).toBe(noon + 1);
});
