import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import {
  AlreadyOwnedError,
  createRuntime,
  defineAgent,
  defineTool,
  getRuntime,
  type Runtime,
} from "../../src/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { calling, createGate } from "../support/turn-probes.ts";

const desk = (answer = "Noted.") => defineAgent({ name: "desk", model: scriptedModel(answer) });

let folder = "";
let opened: Runtime[] = [];
/** Each test uses its own key: runtimes are shared within the process. */
let key = "";

beforeEach(({ task }) => {
  folder = mkdtempSync(join(tmpdir(), "troupe-"));
  opened = [];
  key = task.id;
});

afterEach(async () => {
  await Promise.all(opened.map((runtime) => runtime.shutdown()));
  rmSync(folder, { recursive: true });
});

async function make(answer?: string): Promise<Runtime> {
  const runtime = await createRuntime({ agents: [desk(answer)], stores: sqliteStores(join(folder, "team.db")) });
  opened.push(runtime);
  return runtime;
}

function failing(): Promise<Runtime> {
  return Promise.reject(new Error("out of disks"));
}

async function answerOf(runtime: Runtime): Promise<string> {
  const agent = await runtime.agent("desk", { agentId: "a" });
  await agent.start();
  return (await agent.executeTurn("go").result).text;
}

describe("getRuntime()", () => {
  it("creates one runtime per key, for concurrent calls too", async () => {
    const [one, other] = await Promise.all([getRuntime(key, make), getRuntime(key, make)]);
    expect(other).toBe(one);
    expect(await getRuntime(key, make)).toBe(one);
    expect(await getRuntime(`${key} other`, make)).not.toBe(one);
    expect(opened).toHaveLength(2);
  });

  it("returns the existing runtime to a module that is loaded again", async () => {
    const runtime = await getRuntime(key, () => make());
    expect(await answerOf(runtime)).toBe("Noted.");
    const module = new URL("../../src/runtime/get-runtime.ts?again", import.meta.url).href;
    const again = (await import(module)) as { readonly getRuntime: typeof getRuntime };
    expect(again.getRuntime).not.toBe(getRuntime);
    const same = await again.getRuntime(key, () => make("Never made."));
    expect(same).toBe(runtime);
    expect(await answerOf(same)).toBe("Noted.");
  });

  it("does not cache a failure", async () => {
    const calls = await Promise.allSettled([getRuntime(key, failing), getRuntime(key, failing)]);
    expect(calls).toMatchObject([{ reason: { message: "out of disks" } }, { reason: { message: "out of disks" } }]);
    expect(await answerOf(await getRuntime(key, make))).toBe("Noted.");
  });

  it.each(["shutdown", "drain"] as const)(
    "creates a new runtime after %s(), once the old one has left",
    async (leave) => {
      const old = await getRuntime(key, make);
      expect(await answerOf(old)).toBe("Noted.");
      expect(old.isOpen).toBe(true);
      const left = old[leave]();
      expect(old.isOpen).toBe(false);
      const [one, other] = await Promise.all([getRuntime(key, make), getRuntime(key, make)]);
      expect(one).not.toBe(old);
      expect(other).toBe(one);
      expect(await answerOf(one)).toBe("Noted.");
      await left;
    },
  );

  it("replaces the runtime when the version changes", async () => {
    const old = await getRuntime(key, () => make("old"), { version: 1 });
    expect(await answerOf(old)).toBe("old");
    const [one, other] = await Promise.all([
      getRuntime(key, () => make("new"), { version: 2 }),
      getRuntime(key, () => make("new"), { version: 2 }),
    ]);
    expect(one).toBe(other);
    expect(old.isOpen).toBe(false);
    expect(await answerOf(one)).toBe("new");
    expect((await one.find("a")).state.turnCount).toBe(2);
  });

  it("the new runtime continues an open turn", async () => {
    const gate = createGate();
    const hold = defineTool({
      name: "hold",
      description: "Holds on.",
      parameters: z.object({}),
      effect: "none",
      execute: (_, { signal }) => gate.pass(signal),
    });
    const model = scriptedModel(({ messages }) => (messages.at(-1)?.role === "tool" ? "Held." : calling("hold")));
    const make = async (): Promise<Runtime> => {
      const agents = [defineAgent({ name: "holder", model, tools: [hold] })];
      const runtime = await createRuntime({ agents, stores: sqliteStores(join(folder, "team.db")) });
      opened.push(runtime);
      return runtime;
    };
    const old = await getRuntime(key, make, { version: "a" });
    const agent = await old.agent("holder", { agentId: "a" });
    await agent.start();
    const left = agent.executeTurn("go").result.catch((error: unknown) => error);
    await gate.reached();
    const next = await getRuntime(key, make, { version: "b" });
    expect(await left).toMatchObject({ code: "turn_interrupted" });
    gate.open();
    const same = await next.find("a");
    await same.start();
    expect((await same.turn("a#1").result).text).toBe("Held.");
  });

  it("refuses wrong input", async () => {
    await expect(getRuntime("", make)).rejects.toThrow("getRuntime(): its key");
    await expect(getRuntime(key, "make" as never)).rejects.toThrow("getRuntime(): its function");
    await expect(getRuntime(key, make, { version: {} as never })).rejects.toThrow("a text or a number");
    await expect(getRuntime(key, make, { version: Number.NaN })).rejects.toThrow("a text or a number");
    await expect(getRuntime(key, () => ({}) as Runtime)).rejects.toThrow("expected a runtime made by createRuntime()");
  });
});

it("the error of a second runtime on the same stores names the owning process and suggests getRuntime()", async () => {
  await answerOf(await make());
  const second = await make();
  const agent = await second.find("a");
  await expect(agent.start()).rejects.toThrow(AlreadyOwnedError);
  await expect(agent.start()).rejects.toThrow(
    `agent "a" is run by another runtime of this process (${process.pid}); share one with getRuntime()`,
  );
});
