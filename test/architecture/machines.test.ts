import { expect, test } from "vitest";
import { agentMachine, toolCallMachine, turnMachine } from "../../src/machines/index.ts";
import { machineFaults, nodesOf } from "./machine-walk.ts";

test.each([
  { name: "agent", machine: agentMachine },
  { name: "turn", machine: turnMachine },
  { name: "tool call", machine: toolCallMachine },
])("the $name machine can be folded from a journal", ({ machine }) => {
  expect(nodesOf(machine.root).length).toBeGreaterThan(3);
  expect(machineFaults(machine)).toEqual([]);
});
