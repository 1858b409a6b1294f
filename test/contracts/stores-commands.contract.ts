import { expect, test } from "vitest";
import type { Stores } from "../../src/stores/index.ts";
import { note } from "./entry-fixtures.ts";
import { NOW, ROOT } from "./names.ts";
import { identityOf, agentKey, openAgent, ready } from "./stores-fixtures.ts";

const command = { input: "hello", actorId: "ann", limits: { maxSteps: 3 }, ifBusy: "refuse" } as const;

export function commandsContract(subject: () => Stores): void {
  test("a turn is opened on a free agent and waits in its inbox, whether or not the agent has an owner", async () => {
    const owner = await openAgent(subject());
    await subject().release(agentKey(), owner.epoch);
    const item = {
      kind: "turn",
      key: `turn:${ROOT}#1`,
      at: NOW,
      turnId: `${ROOT}#1`,
      number: 1,
      input: "hello",
      actorId: "ann",
      limits: { maxSteps: 3 },
    };
    expect(await subject().openTurn(agentKey(), command, NOW)).toEqual({
      type: "opened",
      turnId: `${ROOT}#1`,
      number: 1,
      item,
      record: await subject().readAgent(agentKey()),
      posted: [ROOT],
    });
    expect(await subject().inbox(agentKey())).toEqual([item]);
    expect(await subject().readAgent(agentKey())).toMatchObject({ openTurnId: `${ROOT}#1`, nextTurnNumber: 2 });
  });

  test("the client tools of a turn are stored with its item", async () => {
    await openAgent(subject());
    const parameters = { type: "object", properties: { "a\0": { const: ["\ud800", null] } } };
    const clientTools = [{ name: "pick", description: "Lets the user pick.", parameters }];
    await subject().openTurn(agentKey(), { ...command, clientTools }, NOW);
    await subject().openTurn(agentKey(), { ...command, ifBusy: "queue" }, NOW);
    const [first, second] = await subject().inbox(agentKey());
    expect(first).toMatchObject({ turnId: `${ROOT}#1`, clientTools });
    expect(second).not.toHaveProperty("clientTools");
  });

  test("a command never moves seq: the owner's next batch fits (invariant 3)", async () => {
    const owner = await openAgent(subject());
    await subject().openTurn(agentKey(), command, NOW);
    await subject().pause(agentKey(), "ann", NOW);
    await subject().resume(agentKey(), "ann", NOW);
    expect((await owner.commit({ entries: [note("next")] })).entries).toMatchObject([{ seq: 2 }]);
  });

  test("the owner's commits keep the fields that commands set, and commands keep the owner's fields", async () => {
    const owner = await openAgent(subject());
    await subject().openTurn(agentKey(), command, NOW);
    await owner.commit({ entries: [note("busy")], owned: { ...ready, status: "busy", turnCount: 4 } });
    await subject().pause(agentKey(), "ann", NOW);
    expect(await subject().readAgent(agentKey())).toMatchObject({
      status: "busy",
      turnCount: 4,
      openTurnId: `${ROOT}#1`,
      pause: { by: "ann", at: NOW },
    });
  });

  test("a second turn is refused as busy, or queued if requested, and opens when the first is closed", async () => {
    const owner = await openAgent(subject());
    await subject().openTurn(agentKey(), command, NOW);
    expect(await subject().openTurn(agentKey(), command, NOW)).toEqual({ type: "busy", openTurnId: `${ROOT}#1` });
    const queued = [];
    for (let count = 0; count < 2; count += 1) {
      queued.push(await subject().openTurn(agentKey(), { ...command, ifBusy: "queue" }, NOW));
    }
    expect(queued).toMatchObject([
      { type: "queued", turnId: `${ROOT}#2`, number: 2 },
      { type: "queued", turnId: `${ROOT}#3`, number: 3 },
    ]);
    await owner.commit({ entries: [note("ended")], closedTurnId: `${ROOT}#1` });
    expect(await subject().readAgent(agentKey())).toMatchObject({
      openTurnId: `${ROOT}#2`,
      queuedTurnIds: [`${ROOT}#3`],
    });
    await owner.commit({ entries: [note("of a turn that is not open")], closedTurnId: `${ROOT}#1` });
    expect(await subject().readAgent(agentKey())).toMatchObject({ openTurnId: `${ROOT}#2` });
    await owner.commit({ entries: [note("ended")], closedTurnId: `${ROOT}#2` });
    await owner.commit({ entries: [note("ended")], closedTurnId: `${ROOT}#3` });
    expect(await subject().readAgent(agentKey())).toMatchObject({ openTurnId: null, queuedTurnIds: [] });
  });

  test("an agent that was not started or is shut down accepts no turn; an unknown one is not found", async () => {
    await subject().createAgent(identityOf("fresh"), null);
    expect(await subject().openTurn(agentKey("fresh"), command, NOW)).toEqual({ type: "refused", status: "created" });
    const owner = await openAgent(subject());
    await owner.commit({ entries: [note("ended")], owned: { ...ready, status: "shutdown" } });
    expect(await subject().openTurn(agentKey(), command, NOW)).toEqual({ type: "refused", status: "shutdown" });
    expect(await subject().openTurn(agentKey("nobody"), command, NOW)).toEqual({ type: "notFound" });
  });
}
