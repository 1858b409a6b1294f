import { textOf } from "troupe";
import { AgentView } from "troupe/client";
import { expect, it, onTestFinished } from "vitest";
import { clientServed } from "./client-served.ts";

it("agent.steer() and turn.steer() give the open turn an input, and start a turn after its end", async () => {
  const { client, sent } = await clientServed();
  const agent = await client.createAgent({ definition: "desk" });
  const turn = await agent.executeTurn("remove");
  const { requests } = await turn.settled();
  const place = { agentId: agent.agentId, turnId: turn.turnId, number: 1 };
  expect(await turn.steer("quickly")).toEqual({ status: "delivered", ...place, step: 2 });
  expect(await agent.steer("please", { idempotencyKey: "k" })).toMatchObject({ status: "delivered", step: 2 });
  expect((await agent.executeTurn("now", { ifBusy: "steer" })).number).toBe(1);
  expect(sent.at(-2)).toEqual({ what: `POST /api/agents/${agent.agentId}/steer`, key: "k" });
  const [request] = requests;
  if (request !== undefined) await client.decide(request, { verdict: "approved" });
  expect(await turn.settled()).toMatchObject({ status: "completed", result: { text: "You said now" } });
  expect(await turn.steer("late")).toMatchObject({ status: "queued", number: 2 });
});

it("wrong inputs are refused before anything is sent", async () => {
  const { client, sent } = await clientServed();
  const agent = client.agent("desk-1");
  for (const input of [null, 7, []]) {
    await expect(agent.steer(input as unknown as string)).rejects.toMatchObject({ code: "invalid_input" });
  }
  await expect(agent.steer("go", { budget: {} } as object)).rejects.toMatchObject({ code: "invalid_input" });
  await expect(agent.executeTurn("go", { ifBusy: "stear" as "steer" })).rejects.toThrow("steer");
  expect(sent).toEqual([]);
});

it("a view of an agent shows a steered message once the model is asked", async () => {
  const { client } = await clientServed();
  const view = new AgentView(client, { definition: "desk", key: "page" });
  onTestFinished(view.close);
  const reached = (isWanted: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      const look = (): void => {
        if (isWanted()) resolve();
      };
      view.subscribe(look);
      look();
    });
  view.open();
  await reached(() => view.snapshot().status === "ready");
  await view.send("remove");
  await reached(() => view.snapshot().requests.length > 0);
  expect(await view.steer("quickly")).toMatchObject({ status: "delivered", step: 2 });
  const [request] = view.snapshot().requests;
  if (request !== undefined) await view.decide(request, { verdict: "approved" });
  await reached(() => view.snapshot().turn?.status === "completed");
  const texts = view.snapshot().messages.map(({ content }) => textOf(content));
  expect(texts.slice(-2)).toEqual(["quickly", "You said quickly"]);
});
