import { expect, it } from "vitest";
import {
  type ForeignWrite,
  ForeignWriteList,
  isPostedTo,
  isRecordChanged,
  isTreeChanged,
} from "../../src/stores/index.ts";

const write = (rootAgentId: string, fields: Partial<ForeignWrite> = {}): ForeignWrite => ({
  tenant: "t",
  rootAgentId,
  posted: [],
  records: [],
  timerAt: null,
  ...fields,
});
const key = (agentId: string, tenant = "t") => ({ tenant, agentId });

it("a list of writes names the trees, inboxes and records that may have changed", () => {
  const list = new ForeignWriteList([
    write("a", { posted: ["a"] }),
    write("b", { records: null }),
    write("a", { records: ["a~kid"] }),
    write("c", { tenant: "other", posted: null, records: null }),
  ]);
  const said = (agentId: string) => {
    const of = key(agentId);
    return [isTreeChanged(list, of), isPostedTo(list, of), isRecordChanged(list, of)];
  };
  expect(said("a")).toEqual([true, true, false]);
  expect(said("a~kid")).toEqual([true, false, true]);
  expect(said("b~any")).toEqual([true, false, true]);
  expect(said("c")).toEqual([false, false, false]);
  expect(isPostedTo(list, key("c", "other"))).toBe(true);
  expect(said("d")).toEqual([false, false, false]);
  expect(isTreeChanged("any", key("d"))).toBe(true);
});

it("each list is sorted once, also if two are read alternately", () => {
  let reads = 0;
  const counted = (rootAgentId: string): ForeignWrite =>
    Object.defineProperty(write(rootAgentId), "rootAgentId", {
      get: () => {
        reads += 1;
        return rootAgentId;
      },
    });
  const lists = [new ForeignWriteList([counted("a"), counted("b")]), new ForeignWriteList([counted("c")])];
  expect(reads).toBe(0);
  for (const agentId of ["a", "b", "c", "d"]) for (const list of lists) isTreeChanged(list, key(agentId));
  expect(reads).toBe(3);
});
