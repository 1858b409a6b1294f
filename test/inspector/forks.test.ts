import { describe, expect, onTestFinished, test } from "vitest";
import { createRuntime, memoryStores } from "../../src/index.ts";
import { runtimeActor } from "../../src/inspector/feed/act.ts";
import { Feed } from "../../src/inspector/feed/feed.ts";
import {
  failureSchema,
  feedAgentSchema,
  forkAnswerSchema,
  runForksSchema,
  runReplaySchema,
} from "../../src/inspector/feed/wire.ts";
import type { Account } from "../../src/inspector/run-model/account-at.ts";
import { RunLog, type RunRow } from "../../src/inspector/run-model/run-log.ts";
import { RunMoments } from "../../src/inspector/run-model/run-moments.ts";
import { sinceFork } from "../../src/inspector/run-model/since-fork.ts";
import { serveFeed } from "../../src/inspector/start-inspector.ts";
import { type Shop, shopOf } from "./fork-shop.ts";
import { visit } from "./visitors.ts";

async function served(shop: Shop, { mayAct = true, now = shop.desk, namesOnly = false } = {}) {
  const stores = memoryStores();
  const runtime = await createRuntime({ agents: [shop.desk], stores });
  const agent = await runtime.agent("desk", { agentId: "shop" });
  await agent.start();
  await agent.executeTurn("Refund order 17.").result;
  const today = now === shop.desk ? runtime : await createRuntime({ agents: [now], stores, recovers: "own" });
  const feed = new Feed({ namesOnly });
  feed.add({ stores, tenant: "default", runtime: today, actor: runtimeActor(today, "mara") });
  const server = await serveFeed(feed, { mayAct });
  onTestFinished(async () => {
    await server.close();
    await runtime.shutdown();
  });
  const ask = async (
    method: "GET" | "POST",
    path: string,
    body?: unknown,
    token = server.tokens.act ?? server.tokens.watch,
  ) => {
    const answer = await fetch(`${server.origin}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(method === "POST" ? { body: JSON.stringify(body ?? {}) } : {}),
    });
    const text = await answer.text();
    return { status: answer.status, body: text === "" ? undefined : (JSON.parse(text) as unknown) };
  };
  const fork = async (body: Record<string, unknown>, runId = "shop"): Promise<string> => {
    const { body: answer } = await ask("POST", `/api/runs/${runId}/fork`, { key: crypto.randomUUID(), ...body });
    const { runId: forkId } = forkAnswerSchema.parse(answer);
    const forked = await runtime.find(forkId);
    const turn = forked.openTurn() ?? forked.turn(`${forkId}#1`);
    await turn.result;
    return forkId;
  };
  const refusal = async (body: unknown, runId = "shop") => {
    const { status, body: answer } = await ask("POST", `/api/runs/${runId}/fork`, body);
    return { status, message: failureSchema.parse(answer).error.message };
  };
  const forks = async (runId = "shop") => runForksSchema.parse((await ask("GET", `/api/runs/${runId}/forks`)).body);
  const answerOf = async (runId: string): Promise<string> =>
    JSON.stringify((await (await runtime.find(runId)).getMessages()).at(-1)?.content);
  return { runtime, stores, feed, server, ask, fork, refusal, forks, answerOf };
}

describe("forking from the inspector", () => {
  test("lists the steps of the run and the models of the process", async () => {
    const { forks } = await served(shopOf());
    const { points, models, family, isWhole } = await forks();
    expect(points.map(({ turn, step }) => [turn, step])).toEqual([
      [1, 1],
      [1, 2],
      [1, 3],
      [1, null],
    ]);
    expect(points[1]).toMatchObject({ model: "first-model", inputId: expect.any(String), seq: expect.any(Number) });
    expect(models).toEqual(["first-model", "second-model"]);
    expect(family.map(({ runId }) => runId)).toEqual(["shop"]);
    expect(isWhole).toBe(true);
  });

  test("runs the fork with all changes as a tree of the same runtime, without a second payment", async () => {
    const shop = shopOf();
    const { fork, answerOf, runtime } = await served(shop);
    const forkId = await fork({
      at: { turn: 1, step: 2 },
      model: "second-model",
      input: "Be quick.",
      edit: {
        prompt: "Refund order 17, please.",
        instructions: "You are brief.",
        messages: { "shop#1:1:0": '{"state":"fine"}' },
      },
      budget: { maxSteps: 7 },
    });
    const answer = await answerOf(forkId);
    for (const text of ["second-model", "Be quick.", "Refund order 17, please.", "You are brief.", "fine"]) {
      expect(answer).toContain(text);
    }
    expect(answer).not.toContain("broken");
    expect(shop.paid).toEqual(["17"]);
    const accounts = await runtime.accounts(forkId);
    expect(accounts.map(({ limits }) => limits.maxSteps)).toContain(7);
  });

  test("keeps the model of the fork for its later turns in this process", async () => {
    const { fork, answerOf, runtime } = await served(shopOf());
    const forkId = await fork({ at: { turn: 1, step: 3 }, model: "second-model" });
    const agent = await runtime.find(forkId);
    await agent.shutdown();
    await agent.start();
    await agent.executeTurn("And now?").result;
    expect(await answerOf(forkId)).toContain("second-model read");
    await agent.shutdown();
    const copy = await runtime.agent("desk", { agentId: "unforked" });
    await copy.start();
    await copy.executeTurn("Hello.").result;
    expect(await answerOf("unforked")).toContain("first-model read");
  });

  test("makes one fork of a form that is sent twice", async () => {
    const { ask, forks } = await served(shopOf());
    const body = { key: "once", at: { turn: 1, step: 3 } };
    const [one, other] = await Promise.all([
      ask("POST", "/api/runs/shop/fork", body),
      ask("POST", "/api/runs/shop/fork", body),
    ]);
    expect(one).toEqual(other);
    expect((await forks()).family).toHaveLength(2);
  });

  test("refuses wrong forms with a reason, and stores nothing", async () => {
    const { refusal, forks } = await served(shopOf());
    const at = { turn: 1, step: 2 };
    const key = "k";
    expect(await refusal({ key, at: { turn: 9 } })).toMatchObject({
      status: 400,
      message: expect.stringContaining("1:1 to 1:3"),
    });
    expect(await refusal({ key, at: { turn: 1 } })).toMatchObject({
      status: 400,
      message: expect.stringContaining("input"),
    });
    expect(await refusal({ key, at, model: "gpt-99" })).toMatchObject({
      status: 400,
      message: expect.stringContaining("first-model, second-model"),
    });
    expect(await refusal({ key, at, edit: { messages: { "other#1:1:0": "{}" } } })).toMatchObject({
      status: 400,
      message: expect.stringContaining("other#1:1:0"),
    });
    for (const wrong of [
      { at },
      { key, at: { turn: 0 } },
      { key, at: { turn: 1.5 } },
      { key, at, allow: ["refund"] },
      { key, at, edit: { messages: { "shop#1:1:0": { state: 1 } } } },
      { key, at, edit: { prompt: 5 } },
      { key, at, budget: { maxCost: -1 } },
      { key, at, budget: { deadline: 5 } },
      [],
      null,
    ]) {
      expect((await refusal(wrong)).status).toBe(400);
    }
    expect(await refusal({ key, at }, "nothing")).toMatchObject({ status: 404 });
    expect((await forks()).family).toHaveLength(1);
  });

  test("needs the token for acting, and a process with the definitions", async () => {
    const { ask, server, stores } = await served(shopOf());
    for (const path of ["/api/runs/shop/fork", "/api/runs/shop/replay"]) {
      const body = { key: "k", at: { turn: 1, step: 1 } };
      expect((await ask("POST", path, body, server.tokens.watch)).status).toBe(403);
      const token = { authorization: `Bearer ${server.tokens.act}`, "content-type": "application/json" };
      expect((await visit(server.origin + path, { ...token, origin: "http://evil.example" }, "POST")).status).toBe(403);
      expect((await visit(server.origin + path, { ...token, host: "evil.example" }, "POST")).status).toBe(403);
      expect((await visit(server.origin + path, { ...token, "content-type": "text/plain" }, "POST")).status).toBe(415);
      expect((await visit(server.origin + path, token, "PUT")).status).toBe(405);
    }
    const copy = new Feed();
    copy.add({ stores, tenant: "default" });
    expect(await copy.forks("shop")).toMatchObject({ models: null });
    await expect(copy.replay("shop")).rejects.toThrow('use "troupe fork" and "troupe replay"');
  });
});

describe("the family of a run", () => {
  test("has forks of forks below their origins, and every run shows its origin", async () => {
    const { fork, forks, feed } = await served(shopOf());
    const one = await fork({ at: { turn: 1, step: 3 } });
    const deep = await fork({ at: { turn: 1, step: 2 } }, one);
    const other = await fork({ at: { turn: 1, step: 1 } });
    for (const runId of ["shop", one, deep, other]) {
      const { family } = await forks(runId);
      expect(family.map((row) => [row.runId, row.origin?.runId, row.origin?.step])).toEqual([
        ["shop", undefined, undefined],
        [one, "shop", 3],
        [deep, one, 2],
        [other, "shop", 1],
      ]);
    }
    const { items } = await feed.runs({});
    expect(items.find(({ runId }) => runId === deep)?.origin).toEqual({ runId: one, turn: 1, step: 2, isStored: true });
    const { agents } = await feed.head(deep);
    expect(agents.map((agent) => feedAgentSchema.parse(agent).origin?.runId)).toEqual([one]);
  });

  test("shows a deleted origin as deleted, and its other forks", async () => {
    const { fork, stores } = await served(shopOf());
    const one = await fork({ at: { turn: 1, step: 3 } });
    const other = await fork({ at: { turn: 1, step: 2 } });
    const elsewhere = memoryStores();
    for (const agentId of [one, other]) {
      const tree = await stores.exportTree("default", agentId);
      if (tree) await elsewhere.importTree(tree, agentId, { replaces: "absent" });
    }
    const feed = new Feed();
    feed.add({ stores: elsewhere, tenant: "default" });
    const { family } = await feed.forks(one);
    expect(family.map(({ runId, origin }) => [runId, origin?.runId, origin?.isStored])).toEqual([
      [one, "shop", false],
      [other, "shop", false],
    ]);
  });

  test("folds the accounts of a fork to those that are stored", async () => {
    const { fork, feed } = await served(shopOf());
    const one = await fork({ at: { turn: 1, step: 2 }, budget: { maxTokens: 100_000 } });
    const next = await fork({ at: { turn: 1 }, input: "And now?" });
    for (const runId of [one, next, await fork({ at: { turn: 1, step: 3 } }, one)]) {
      const { accounts, agents } = await feed.head(runId);
      const log = new RunLog();
      log.addAgents(agents);
      log.append((await feed.rows(runId, 0)) as unknown as readonly RunRow[]);
      const moments = new RunMoments(log);
      moments.learn(accounts);
      const folded = moments.at(log.length).accounts.accounts;
      const shown = ({ id, used, reserved, limits, models }: Account) => {
        const { activeMs: _ofClocks, ...amounts } = used;
        return { id, amounts, reserved, limits, models };
      };
      const byId = (one: { readonly id: string }, other: { readonly id: string }) => one.id.localeCompare(other.id);
      expect(folded.map(shown).toSorted(byId)).toEqual(accounts.map(shown).toSorted(byId));
    }
  });

  test("counts what a fork and its origin did after they parted", async () => {
    const { fork, feed } = await served(shopOf());
    const forkId = await fork({ at: { turn: 1, step: 3 }, model: "second-model" });
    const logOf = async (runId: string): Promise<RunLog> => {
      const log = new RunLog();
      log.addAgents((await feed.head(runId)).agents);
      log.append((await feed.rows(runId, 0)) as unknown as readonly RunRow[]);
      return log;
    };
    const [origin, made] = [await logOf("shop"), await logOf(forkId)];
    expect(sinceFork(origin, made)).toMatchObject({
      origin: { steps: 1, toolCalls: 0, calls: 1 },
      fork: { steps: 1, toolCalls: 0, calls: 1 },
    });
    expect(sinceFork(made, origin)).toBeUndefined();
    expect(sinceFork(made, made)).toBeUndefined();
    const { run } = await feed.head(forkId);
    expect(sinceFork(origin, made)?.fork.tokens).toBe(run.tokens);
  });
});

describe("replay from the inspector", () => {
  test("finds the run equal under the definitions of its process", async () => {
    const shop = shopOf();
    const { ask } = await served(shop);
    const calls = shop.model.calls.length;
    const result = runReplaySchema.parse((await ask("POST", "/api/runs/shop/replay")).body);
    expect(result).toMatchObject({ isEqual: true, divergence: null, requests: 3 });
    expect(shop.model.calls).toHaveLength(calls);
  });

  test("names the first step that differs, with a diff", async () => {
    const { ask } = await served(shopOf(), { now: shopOf("You serve the shop, briefly.").desk });
    const { divergence } = runReplaySchema.parse((await ask("POST", "/api/runs/shop/replay")).body);
    expect(divergence).toMatchObject({ agentId: "shop", turn: 1, step: 1 });
    expect(divergence?.diff).toContain("+");
    expect(divergence?.diff).toContain("briefly");
  });

  test("has no contents where only names are shown", async () => {
    const { ask } = await served(shopOf(), { now: shopOf("Secret words.").desk, namesOnly: true });
    const { body } = await ask("POST", "/api/runs/shop/replay");
    expect(runReplaySchema.parse(body).isEqual).toBe(false);
    expect(JSON.stringify(body)).not.toContain("Secret");
  });
});
