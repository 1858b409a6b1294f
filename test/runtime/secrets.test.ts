import { afterEach, beforeEach, expect, it } from "vitest";
import { z } from "zod";
import { type Auth, defineAgent, defineTool, type TroupeEvent } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling } from "../support/turn-probes.ts";

const inCredentials = "canary-credential-7d1f";
const inEnvironment = "canary-environment-55ab";
const header = "Bearer canary.header.0123456789abcdef";

beforeEach(() => {
  process.env["CANARY_API_KEY"] = inEnvironment;
});
afterEach(() => {
  delete process.env["CANARY_API_KEY"];
});

function tokenOf(auth: Auth | undefined): string {
  return (auth?.credentials as { token: string } | undefined)?.token ?? "no token";
}

/** A tool that leaks its secrets in every possible way. */
const leak = defineTool({
  name: "leak",
  description: "Leaks.",
  parameters: z.object({ how: z.string() }),
  effect: "none",
  execute: async ({ how }, run) => {
    const token = tokenOf(run.auth);
    const secret = `${token} and ${process.env["CANARY_API_KEY"]}`;
    if (how === "throw") throw new Error(`401 for authorization: ${header}, with ${secret}`);
    if (how === "progress") run.progress({ secret });
    if (how === "artifact") await run.saveArtifact({ name: "dump", contentType: "text/plain", content: secret });
    if (how === "generate") return (await run.generate({ messages: [{ role: "user", content: secret }] })).content;
    return { secret, nested: [{ secret }] };
  },
});

describeRuntimes("S13: secrets", (stage) => {
  it("from credentials, the environment and headers are in no store, event or message", async () => {
    const ways = ["return", "throw", "progress", "artifact", "generate"];
    const calls = ways.map((how) => ({ name: "leak", arguments: { how } }));
    const model = scriptedModel((_request, { index }) => (index === 0 ? calling(...calls) : "done"));
    const agent = defineAgent({
      name: "desk",
      model,
      tools: [leak],
      hooks: {
        onComplete: (_draft, run) => {
          throw new Error(`the hook fails with ${tokenOf(run.auth)}`);
        },
      },
    });
    const runtime = await stage().open({ agents: [agent] });
    const events: TroupeEvent[] = [];
    runtime.subscribe((event) => events.push(event));
    const desk = await runtime.agent("desk", { agentId: "a" });
    await desk.start();
    const auth = { actorId: "ada", credentials: { token: inCredentials } };
    const result = await desk.executeTurn("go", { auth }).result;
    expect(result.status).toBe("failed");

    const look = stage().look();
    const key = { tenant: "default", agentId: "a" };
    const [artifact] = await look.artifacts(key);
    const everything = JSON.stringify([
      events,
      result,
      model.calls,
      await look.messages(key),
      await look.readJournal(key, 1),
      await look.readAgent(key),
      await look.artifact(key, artifact?.artifactId ?? ""),
      await desk.getTrace(),
      await desk.getState(),
    ]);
    for (const text of [everything, stage().stored()]) {
      expect(text).not.toContain(inCredentials);
      expect(text).not.toContain(inEnvironment);
      expect(text).not.toContain("canary.header");
    }
    expect(everything).toContain("[redacted]");
    expect(model.calls.length).toBeGreaterThan(2);
  });
});
