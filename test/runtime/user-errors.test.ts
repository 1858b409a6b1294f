import { expect, it, vi } from "vitest";
import { z } from "zod";
import { type AgentOptions, defineAgent, defineTool, ModelError } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { startAgent } from "../support/deciding.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling } from "../support/turn-probes.ts";

class OwnError extends Error {}

const thrown = new OwnError("boom");
const fail = (): never => {
  throw thrown;
};
const refused = new ModelError("no such model", { retryable: false, mayHaveBeenSent: true, status: 404 });

const failing: Readonly<Record<string, [Partial<AgentOptions>, string, Error]>> = {
  "a hook": [{ hooks: { beforeLlm: fail } }, 'the hook beforeLlm of "agent"', thrown],
  "a hook of a plugin": [
    { plugins: [{ name: "audit", hooks: { beforeLlm: fail } }] },
    'the hook beforeLlm of "audit"',
    thrown,
  ],
  instructions: [{ instructions: fail }, 'instructions() of agent "clerk"', thrown],
  "a history compiler": [
    { history: { name: "own", internalTools: false, compile: fail } },
    'the history compiler "own"',
    thrown,
  ],
  "a model": [{ model: scriptedModel({ error: refused }) }, 'model "scripted"', refused],
};

describeRuntimes("errors of user code", (stage) => {
  const open = async (options: Partial<AgentOptions>) => {
    const agents = [defineAgent({ name: "clerk", model: scriptedModel("ok"), ...options })];
    return { agents, agent: await startAgent(await stage().open({ agents }), "clerk", "c") };
  };

  it.each(Object.entries(failing))(
    "%s: the result has the thrown error, and its text states the cause",
    async (_what, row) => {
      const [options, source, cause] = row;
      const { agents, agent } = await open(options);
      const { status, text, error } = await agent.executeTurn("go").result;
      expect({ status, text }).toEqual({ status: "failed", text: `Task failed: ${cause.message}` });
      expect(error?.cause).toBe(cause);
      expect(error?.source).toBe(source);
      expect(JSON.parse(JSON.stringify(error))).toEqual({
        code: error?.code,
        message: cause.message,
        retryable: false,
      });
      expect(Object.isFrozen(cause)).toBe(false);
      // The cause is not stored, so other processes do not see it.
      expect(stage().stored()).not.toContain("user-errors.test");
      const later = await (await (await stage().open({ agents })).find("c")).turn("c#1").result;
      expect(later).toMatchObject({ status: "failed", text, error: { message: cause.message } });
      expect(later.error).not.toHaveProperty("cause");
    },
  );

  it("with TROUPE_DEBUG=1 each error is printed with its stack and the name of its code, without secrets", async () => {
    const written: string[] = [];
    vi.stubEnv("TROUPE_DEBUG", "1");
    vi.spyOn(process.stderr, "write").mockImplementation((text) => written.push(String(text)) > 0);
    try {
      const look = defineTool({
        name: "look",
        description: "Looks.",
        parameters: z.object({}),
        execute: (_args, run) => {
          throw new OwnError(`no access with ${String(run.auth?.credentials)}`);
        },
      });
      const model = scriptedModel([calling("look"), "done"]);
      const { agent } = await open({ model, tools: [look], hooks: { onComplete: fail } });
      const auth = { actorId: "ada", credentials: "a-secret-of-ada" };
      expect(await agent.executeTurn("go", { auth }).result).toMatchObject({ status: "failed" });
    } finally {
      vi.unstubAllEnvs();
      vi.restoreAllMocks();
    }
    expect(written).toEqual([
      expect.stringMatching(
        /^troupe: tool "look" failed: OwnError: no access with (?!a-secret)[^]*user-errors\.test\.ts/,
      ),
      expect.stringMatching(
        /^troupe: the hook onComplete of "agent" failed: OwnError: boom\n[^]*user-errors\.test\.ts/,
      ),
    ]);
  });
});
