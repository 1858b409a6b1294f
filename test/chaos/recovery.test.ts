import { expect, it } from "vitest";
import type { WitnessLine } from "../../chaos/witness.ts";
import { recoveriesOf } from "../../chaos/workers/recovery.ts";

function acquired(epoch: number, pid: number, at: number): WitnessLine {
  return { type: "acquired", agentId: "f1-1", epoch, pid, sentAt: at - 1, at };
}

it("measures until the next owner of the agent, in any order of the processes' files", () => {
  const lines = [acquired(4, 12, 9_000), acquired(3, 11, 3_500), acquired(1, 10, 100), acquired(2, 11, 200)];
  const kills = [{ pid: 10, at: 150 }];
  expect(recoveriesOf([], lines, kills, new Map())).toEqual([{ agentId: "f1-1", ms: 50, wasOpen: true }]);
  const later = [...lines, { type: "released", agentId: "f1-1", epoch: 2, pid: 11, at: 300 } as WitnessLine];
  expect(recoveriesOf([], later, [{ pid: 11, at: 4_000 }], new Map())).toEqual([
    { agentId: "f1-1", ms: 5_000, wasOpen: true },
  ]);
  expect(recoveriesOf([], later, [{ pid: 12, at: 9_500 }], new Map())).toEqual([
    { agentId: "f1-1", ms: null, wasOpen: true },
  ]);
});

it("measures from the last crash, if a process that had taken the wake crashed too", () => {
  const lines = [acquired(1, 10, 100), acquired(2, 13, 7_000)];
  const kills = [
    { pid: 10, at: 150 },
    { pid: 11, at: 3_300 },
    { pid: 12, at: 5_000 },
  ];
  const msOf = (taken: Record<number, readonly string[]>): (number | null)[] => {
    const byPid = new Map(Object.entries(taken).map(([pid, agentIds]) => [Number(pid), agentIds]));
    return recoveriesOf([], lines, kills, byPid).map(({ ms }) => ms);
  };
  expect(msOf({})).toEqual([6_850]);
  expect(msOf({ 10: ["f1-1"], 11: ["f1-2", "f1-1"] })).toEqual([3_700]);
  // It held another agent, or came after the crash.
  expect(msOf({ 12: ["f1-2"], 13: ["f1-1"] })).toEqual([6_850]);
});

it("distinguishes two workers with the same process id", () => {
  const lines = [acquired(1, 10, 9_000), acquired(2, 11, 9_800)];
  const kills = [
    { pid: 10, at: 150 },
    { pid: 10, at: 9_300 },
  ];
  expect(recoveriesOf([], lines, kills, new Map())).toEqual([{ agentId: "f1-1", ms: 500, wasOpen: true }]);
});
