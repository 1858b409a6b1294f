// The same request, decided over both surfaces concurrently: on one runtime, and on two nodes of one Redis.
import { createRuntime, defineAgent, defineTool, type Runtime, type RuntimeOptions } from "troupe";
import { apiSurface, tealSurface } from "troupe/server";
import { redisStores } from "troupe/stores/redis";
import { scriptedModel } from "troupe/testing";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { amount } from "../support/full.ts";
import { redisProgram, RedisServer } from "../support/redis-server.ts";
import { requestOf, type Served, serve } from "./served.ts";

interface Node extends Served {
  readonly runtime: Runtime;
}

/** A node with both surfaces; `ran` gets a line for each run of the tool that needs an approval. */
async function node(ran: string[], options: Partial<RuntimeOptions> = {}): Promise<Node> {
  const remove = defineTool({
    name: "remove",
    description: "Removes",
    parameters: z.object({}),
    needsApproval: true,
    execute: () => void ran.push("removed"),
  });
  const model = scriptedModel(({ messages }) =>
    messages.at(-1)?.role === "tool" ? { text: "so be it" } : { toolCalls: [{ name: "remove" }] },
  );
  const definition = defineAgent({ name: "desk", model, tools: [remove] });
  const runtime = await createRuntime({ agents: [definition], ...options });
  onTestFinished(() => runtime.shutdown());
  const surfaces = [apiSurface(), tealSurface({ agents: [{ definition, version: "1.0" }] })];
  return { ...serve(runtime, { surfaces }), runtime };
}

interface Verdict {
  readonly action: "approve" | "reject";
  readonly status: number;
  readonly body: string;
}

/** Twenty concurrent decisions, half of each verdict, half over each surface; every second pair at the other node. */
async function decideAtOnce(nodes: readonly [Node, Node], round: number) {
  const [first] = nodes;
  const begun = await first.ask("/desk/1.0", { method: "POST", body: { items: [{ content: "remove it" }] } });
  const { task_id, request_id, content } = (await begun.json()) as {
    readonly task_id: string;
    readonly request_id: string;
    readonly content: { readonly tool_calls: readonly { readonly id: string }[] };
  };
  const requestId = content.tool_calls[0]?.id ?? "";
  const path = `/api/requests/${requestId.replace("#", ".")}`;
  const { argumentsHash } = (await (await first.ask(path)).json()) as { argumentsHash: string };
  const verdicts = await Promise.all(
    Array.from({ length: 20 }, async (_, index): Promise<Verdict> => {
      const action = (index + round) % 2 === 0 ? "approve" : "reject";
      const { server } = nodes[Math.floor(index / 4) % 2 === 0 ? 0 : 1];
      const body = { verdict: action === "approve" ? "approved" : "rejected", argumentsHash };
      const request =
        index % 4 < 2
          ? requestOf(`/tealagents/v1alpha1/resume/${request_id}`, { method: "POST", body: { action } })
          : requestOf(path, { method: "POST", body });
      const response = await server.fetch(request);
      return { action, status: response.status, body: await response.text() };
    }),
  );
  return { verdicts, task: task_id, requestId };
}

/** The faults of a round. Empty if there was one verdict, the tool ran accordingly, and all callers received that verdict. */
async function faultsOf(nodes: readonly [Node, Node], ran: string[], round: number): Promise<unknown[]> {
  const { verdicts, task, requestId } = await decideAtOnce(nodes, round);
  const [{ runtime }] = nodes;
  const agent = await runtime.find(task);
  await agent.turn(`${task}#1`).result;
  const [decided] = await runtime.requests({ rootAgentId: task, status: "decided" });
  const won = decided?.decision?.verdict === "approved" ? "approve" : "reject";
  const told = `${won === "approve" ? "approved" : "rejected"} by ann`;
  // Teal answers an equal decision like the first; troupe's own API names the winner to all later ones.
  const isRight = ({ action, status, body }: Verdict): boolean =>
    status === 200 ? action === won : status === 409 && body.includes(told);
  const runs = won === "approve" ? 1 : 0;
  return [
    ...verdicts.filter((verdict) => !isRight(verdict)),
    ...(verdicts.some(({ status }) => status === 200) ? [] : ["no decision was taken"]),
    ...(decided?.requestId === requestId ? [] : ["another request was decided"]),
    ...(ran.length === runs ? [] : [`the tool ran ${ran.length} times, and not ${runs}`]),
  ];
}

test("over both surfaces of one runtime: one verdict, the tool ran at most once, losers receive the winner's decision", async () => {
  for (let round = 0; round < amount(10, 4); round += 1) {
    const ran: string[] = [];
    const one = await node(ran);
    expect(await faultsOf([one, one], ran, round)).toEqual([]);
  }
});

describe.skipIf(!redisProgram)("on one Redis", () => {
  test("over both surfaces of two nodes: one verdict, the tool ran at most once, losers receive the winner's decision", async () => {
    const place = await RedisServer.start();
    onTestFinished(() => place.stop());
    for (let round = 0; round < amount(10, 3); round += 1) {
      const ran: string[] = [];
      const stores = () => redisStores({ url: place.url, prefix: `r${round}:` });
      const nodes = [await node(ran, { stores: stores() }), await node(ran, { stores: stores() })] as const;
      expect(await faultsOf(nodes, ran, round)).toEqual([]);
    }
  });
});
