import { z } from "zod";
import { AgentStopError, askUser, clientTool, defineTool } from "../../src/index.ts";
import type { Gate } from "../support/turn-probes.ts";

export const look = defineTool({
  name: "look",
  description: "Looks.",
  parameters: z.object({ at: z.string().default("here") }),
  effect: "none",
  execute: ({ at }) => `saw ${at}`,
});

export const broken = defineTool({
  name: "broken",
  description: "Never works.",
  parameters: z.object({}),
  effect: "none",
  execute: () => {
    throw new Error("it is broken");
  },
});

export function flaky() {
  let calls = 0;
  return defineTool({
    name: "flaky",
    description: "Works the second time.",
    parameters: z.object({}),
    effect: "keyed",
    maxAttempts: 3,
    execute: () => {
      calls += 1;
      if (calls === 1) throw new Error("not yet");
      return "now";
    },
  });
}

export const send = defineTool({
  name: "send",
  description: "Sends once.",
  parameters: z.object({}),
  execute: () => {
    throw new Error("the line was cut");
  },
});

export const leave = defineTool({
  name: "leave",
  description: "Stops the run.",
  parameters: z.object({}),
  effect: "none",
  execute: () => {
    throw new AgentStopError("that is enough");
  },
});

export const think = defineTool({
  name: "think",
  description: "Asks the model itself.",
  parameters: z.object({}),
  effect: "none",
  execute: async (_args, run) => (await run.generate({ messages: [{ role: "user", content: "deeper" }] })).content,
});

export function held(gate: Gate<string>, concurrency?: number) {
  return defineTool({
    name: "held",
    description: "Waits for the test.",
    parameters: z.object({}),
    effect: "none",
    concurrency,
    execute: async (_args, run) => await gate.pass(run.signal),
  });
}

export const pay = defineTool({
  name: "pay",
  description: "Pays; a person has to approve it.",
  parameters: z.object({ amount: z.number().default(1) }),
  needsApproval: ({ amount }) => amount > 0,
  approvalExpiresAfterMs: 60_000,
  execute: ({ amount }) => `paid ${amount}`,
});

export const login = defineTool({
  name: "login",
  description: "Needs credentials.",
  parameters: z.object({}),
  needsApproval: true,
  auth: "required",
  effect: "none",
  execute: (_args, run) => `in as ${run.auth?.actorId ?? "nobody"}`,
});

export const ask = askUser();

export const browse = clientTool({
  name: "browse",
  description: "The caller's own browser.",
  parameters: z.object({ url: z.string().default("about:blank") }),
});
