import { expect, test } from "vitest";
import type { Stores } from "../../src/stores/index.ts";
import { NOW, ROOT } from "./names.ts";
import { agentKey, openAgent } from "./stores-fixtures.ts";
import { openChild } from "./tree-fixtures.ts";

export function pausingContract(subject: () => Stores): void {
  const pausesOf = async (agentId: string) =>
    (await subject().inbox(agentKey(agentId))).filter((item) => item.kind === "pause");

  test("an immediate pause marks the items for all agents below as immediate, an ordinary one does not", async () => {
    const owner = await openAgent(subject());
    const kid = await openChild(owner, "kid");
    const agents = [ROOT, kid.key.agentId];
    await subject().pause(agentKey(), "ann", NOW, { now: false });
    for (const agentId of agents) expect((await pausesOf(agentId))[0]).not.toHaveProperty("now");
    await subject().resume(agentKey(), "ann", NOW);
    expect(await subject().pause(agentKey(), "ann", NOW, { now: true })).toEqual({ type: "marked", posted: agents });
    for (const agentId of agents) expect((await pausesOf(agentId)).at(-1)).toMatchObject({ by: "ann", now: true });
  });

  test("a second, immediate pause hastens the first; the pause keeps the name of the first caller", async () => {
    await openAgent(subject());
    await subject().pause(agentKey(), "ann", NOW);
    expect(await subject().pause(agentKey(), "bob", NOW + 1)).toEqual({ type: "unchanged", posted: [] });
    expect(await subject().pause(agentKey(), "bob", NOW + 2, { now: true })).toEqual({
      type: "marked",
      posted: [ROOT],
    });
    expect(await pausesOf(ROOT)).toMatchObject([{ by: "ann" }, { by: "bob", at: NOW + 2, now: true }]);
    expect(await subject().readAgent(agentKey())).toMatchObject({ pause: { by: "ann", at: NOW } });
  });
}
