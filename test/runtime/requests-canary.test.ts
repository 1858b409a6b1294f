import { expect, it } from "vitest";
import { z } from "zod";
import { type Auth, defineAgent, defineTool } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { startAgent } from "../support/deciding.ts";
import { entriesOf, entriesOfType } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling } from "../support/turn-probes.ts";

const canary = "canary-51b7e0";
const ada: Auth = { actorId: "ada", credentials: { token: canary } };

function clerk() {
  const readMail = defineTool({
    name: "read_mail",
    description: "Reads mail.",
    parameters: z.object({}),
    effect: "keyed",
    auth: "required",
    execute: (_args, run) => JSON.stringify(run.auth ?? null),
  });
  return defineAgent({ name: "clerk", model: scriptedModel([calling("read_mail"), "the end"]), tools: [readMail] });
}

describeRuntimes("credentials passed to resume()", (stage) => {
  it("S13: are in no record, request, journal, message, event or inspection frame, nor in the file", async () => {
    const frames: string[] = [];
    const runtime = await stage().open({
      agents: [clerk()],
      onInspect: (_agentId, event) => {
        if (event.type === "@xstate.snapshot") frames.push(JSON.stringify([event.event, event.snapshot]));
      },
    });
    const agent = await startAgent(runtime, "clerk", "c");
    const events: unknown[] = [];
    runtime.subscribe((event) => events.push(event));
    const { overview } = runtime;
    const turn = agent.executeTurn("go", { auth: { actorId: "ada" } });
    await turn.settled;
    await agent.resume({ auth: ada });
    const result = await turn.result;
    const look = stage().look();
    const key = { tenant: "default", agentId: "c" };
    const told: unknown[] = [
      [result, events, overview.getSnapshot(), await agent.getTrace(), agent.state],
      [await look.readAgent(key), await look.inbox(key), await look.messages(key), await entriesOf(look, "c")],
      [await look.requests({ tenant: "default" }), await look.accounts("default", "c")],
      await look.readTree("default", "c", 0, 1_000),
    ];
    expect(JSON.stringify(told)).toContain("provided");
    expect(JSON.stringify(told)).not.toContain(canary);
    expect(frames.join("")).not.toContain(canary);
    expect(await entriesOfType(look, "c", "request.decided")).toMatchObject([{ verdict: "provided", by: "ada" }]);
    const bytes = stage().stored();
    // Memory stores no bytes.
    expect(bytes.includes("provided")).toBe(!stage().variant.startsWith("memory"));
    expect(bytes).not.toContain(canary);
  });
});
