import { expect, it } from "vitest";
import { z } from "zod";
import { armFaultPoints } from "../../src/base/index.ts";
import { type AgentDefinition, defineAgent, defineTool, type Message, subagent, textOf } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { reportsIn, startedIds } from "../support/background.ts";
import { combinedRows, rows, sweep } from "../support/full.ts";
import { entriesOf, loopTurns, orderFault } from "../support/journal-probes.ts";
import { asks } from "../support/leads.ts";
import { describeRuntimes, type Stage, variantNames } from "../support/runtimes.ts";
import { calling, createGate } from "../support/turn-probes.ts";

/** The code of a killed process keeps running in this test; `isOver` keeps it from further effects. */
interface Life {
  isOver: boolean;
  /** Resolves when the lead waits, if it does; the child does not end before that. */
  isAwaited?: Promise<unknown>;
}

const never = Promise.withResolvers<never>().promise;

interface Plan {
  readonly onEnd: "keep" | "wake";
  /** The lead waits for its child before it answers. */
  readonly waits?: boolean;
}

/** A lead whose background child calls a tool. The lead's answer contains how often it saw the child's result. */
function team(life: Life, { onEnd, waits = false }: Plan): AgentDefinition {
  const look = defineTool({
    name: "look",
    description: "Looks.",
    parameters: z.object({}),
    effect: "none",
    execute: async () => (life.isOver ? await never : "seen"),
  });
  const child = scriptedModel(async ({ messages }) => {
    if (life.isOver) return await never;
    if (messages.at(-1)?.role !== "tool") return calling("look");
    await life.isAwaited;
    return life.isOver ? await never : "gold";
  });
  const worker = defineAgent({ name: "worker", model: child, tools: [look], budget: { maxTokens: 100_000 } });
  const model = scriptedModel(async ({ messages }) => {
    if (life.isOver) return await never;
    const started = startedIds(messages).length;
    if (started === 0) return calling(asks("worker", "dig"));
    const waited = messages.filter(({ role }) => role === "tool").length > 1;
    if (waits && !waited) return calling("subagent_wait");
    return `told ${timesTold(messages)} times`;
  });
  return defineAgent({
    name: "lead",
    model,
    tools: [subagent(worker, { mode: "background", onEnd })],
    budget: { maxTokens: 1_000_000, maxSeconds: 600 },
  });
}

function timesTold(messages: readonly Message[]): number {
  const results = messages.filter(({ role, content }) => role === "tool" && textOf(content).includes("gold"));
  return reportsIn(messages).length + results.length;
}

/**
 * Kills the first process at the given hit of a point and lets another continue until everything is at rest. Returns the agent's id,
 * or `undefined` if the point was not hit.
 */
async function survive(stage: Stage, point: string, hit: number, plan: Plan): Promise<string | undefined> {
  const agentId = `c-${point}-${hit}`;
  const life: Life = { isOver: false };
  const doomed = await stage.openProcess({ agents: [team(life, plan)] });
  const begun = Promise.withResolvers<void>();
  if (plan.waits) life.isAwaited = begun.promise;
  const agent = await doomed.runtime.agent("lead", { agentId });
  await agent.start();
  let isStruck = false;
  const strike = (): void => {
    isStruck = true;
    life.isOver = true;
    doomed.kill();
  };
  const disarm = armFaultPoints([
    { name: point, hit, action: strike },
    { name: "wait.begun", hit: 1, action: () => begun.resolve() },
  ]);
  agent.executeTurn("go").result.catch(() => undefined);
  for (let turn = 0; turn < 4_000 && !isStruck; turn += 1) {
    if (turn % 50 === 49 && (await isAtRest(stage, agentId, plan))) break;
    await loopTurns(1);
  }
  disarm();
  if (!isStruck) return undefined;
  await loopTurns(5);
  stage.expireLeases();
  const survivor = await stage.open({ agents: [team({ isOver: false }, plan)] });
  const recovered = await survivor.find(agentId);
  await recovered.start();
  const { turnCount, openTurnId } = recovered.state;
  // A caller that got no turn id asks again.
  if (turnCount === 0 && openTurnId === null) recovered.executeTurn("go").result.catch(() => undefined);
  await survivor.recover();
  for (let turn = 0; turn < 4_000; turn += 1) {
    if (turn % 20 === 19 && (await isAtRest(stage, agentId, plan))) break;
    await loopTurns(1);
  }
  // It would also recover the agents that the next process leaves.
  await survivor.shutdown();
  return agentId;
}

/** Every turn has ended, the child's result was processed, and, if it wakes the lead, a model call has seen it. */
async function isAtRest(stage: Stage, agentId: string, { onEnd }: Plan): Promise<boolean> {
  const stores = stage.look();
  const agents = await stores.listAgents({ tenant: "default", rootAgentId: agentId });
  if (agents.length < 2 || agents.some(({ openTurnId }) => openTurnId !== null)) return false;
  const inboxes = await Promise.all(agents.map((one) => stores.inbox({ tenant: "default", agentId: one.agentId })));
  if (inboxes.some((items) => items.length > 0)) return false;
  const entries = await entriesOf(stores, agentId);
  if (!entries.some(({ type }) => type === "child.reported")) return false;
  return onEnd === "keep" || (await answersOf(stage, agentId)).at(-1) !== "told 0 times";
}

async function answersOf(stage: Stage, agentId: string): Promise<string[]> {
  const messages = await stage.look().messages({ tenant: "default", agentId });
  return messages.flatMap(({ role, content }) => (role === "assistant" && content !== "" ? [textOf(content)] : []));
}

const plans: readonly Plan[] = [{ onEnd: "wake" }, { onEnd: "keep" }, { onEnd: "wake", waits: true }];

describeRuntimes(
  "background children and crashes",
  (stage) => {
    const points = [
      "commit.before",
      "commit.after",
      "commit.acknowledged",
      "model.intent",
      "model.effect",
      "model.result",
      "tool.intent",
      "tool.effect",
      "tool.result",
      "child.intent",
      "child.result",
      "wait.begun",
      "wait.result",
      "turn.result",
    ];
    it.each(
      combinedRows(
        points.flatMap((point) =>
          plans.filter(({ waits }) => waits || !point.startsWith("wait.")).map((plan) => ({ point, plan })),
        ),
      ),
    )(
      `at ${sweep.told} of $point ($plan): reported once, with at most one turn for it, and everything comes to rest`,
      async ({ point, plan }) => {
        let hits = 0;
        for (let hit = 1; hit <= sweep.most; hit += 1) {
          const agentId = await survive(stage(), point, hit, plan);
          if (agentId === undefined) break;
          hits = hit;
          const place = `${point}:${hit}`;
          const stores = stage().look();
          const agents = await stores.listAgents({ tenant: "default", rootAgentId: agentId });
          expect(agents, place).toHaveLength(2);
          for (const { openTurnId } of agents) expect(openTurnId, place).toBeNull();
          const entries = await entriesOf(stores, agentId);
          expect(
            entries.filter(({ type }) => type === "child.spawned"),
            place,
          ).toHaveLength(1);
          expect(
            entries.filter(({ type }) => type === "child.reported"),
            place,
          ).toHaveLength(1);
          const turns = entries.filter(({ type }) => type === "turn.started").length;
          expect(turns, place).toBeLessThanOrEqual(plan.onEnd === "wake" ? 2 : 1);
          const messages = await stores.messages({ tenant: "default", agentId });
          expect(orderFault(messages), place).toBeUndefined();
          expect(timesTold(messages), place).toBe(1);
          const last = (await answersOf(stage(), agentId)).at(-1);
          expect(plan.onEnd === "keep" || last === "told 1 times", `${place}: ${last}`).toBe(true);
          for (const { reserved, activeCount, line } of await stores.accounts("default", agentId)) {
            expect([reserved.tokens, activeCount, line?.waiting ?? 0], place).toEqual([0, 0, 0]);
          }
        }
        expect(hits).toBeGreaterThan(0);
      },
    );

    it("the end of a child in a process that does not run its parent reaches the process that recovers the parent", async () => {
      const gate = createGate<string>();
      const definitions = (isHeld: boolean) => {
        const model = scriptedModel(() => (isHeld ? gate.pass() : "gold"));
        const worker = defineAgent({ name: "worker", model });
        const lead = defineAgent({
          name: "lead",
          model: scriptedModel(({ messages }) =>
            startedIds(messages).length === 0 ? calling(asks("worker", "dig")) : `told ${reportsIn(messages).length}`,
          ),
          tools: [subagent(worker, { mode: "background", onEnd: "wake" })],
        });
        return { worker, lead };
      };
      const doomed = await stage().openProcess({ agents: [definitions(true).lead] });
      const agent = await doomed.runtime.agent("lead", { agentId: "desk" });
      await agent.start();
      await agent.executeTurn("go").result;
      await gate.reached();
      const [childId = ""] = startedIds(await agent.getMessages());
      doomed.kill();
      stage().expireLeases();
      const elsewhere = await stage().openProcess({ agents: [definitions(false).worker] });
      await (await elsewhere.runtime.find(childId)).start();
      await (await elsewhere.runtime.find(childId)).turn(`${childId}#1`).result;
      expect(await stage().look().inbox({ tenant: "default", agentId: "desk" })).toMatchObject([
        { kind: "child.reported" },
      ]);
      elsewhere.kill();
      stage().expireLeases();
      const survivor = await stage().open({ agents: [definitions(false).lead] });
      expect(await survivor.recover()).toEqual(["desk"]);
      const recovered = await survivor.find("desk");
      expect(await recovered.turn("desk#2").result).toMatchObject({ status: "completed", text: "told 1" });
    });
  },
  rows(variantNames, ["memory", "sqlite, restored"]),
);
