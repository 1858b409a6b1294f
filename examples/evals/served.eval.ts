// End-to-end evals over HTTP of the agent in desk.ts: it is served as in production, and stubs take the place of its tools. With an agent
// that is deployed, only the address and the secret are needed here.
import { createRuntime } from "troupe";
import { createClient } from "troupe/client";
import { serveRuntime, tokenAuth } from "troupe/server";
import { afterAll, beforeAll, expect, test } from "vitest";
import { agent } from "./desk.ts";

const [token, secret] = ["a-token-of-the-evals", "a-secret-of-the-evals"];
const runtime = await createRuntime({ agents: [agent] });
const server = serveRuntime(runtime, {
  authenticate: tokenAuth({ tokens: { [token]: { userId: "evals", scopes: [] } } }),
  stubs: { secret },
});
let url = "";
beforeAll(async () => {
  ({ url } = await server.listen({ port: 0 }));
});
afterAll(async () => {
  await server.close();
  await runtime.shutdown();
});

test("a broken order is refunded, over HTTP", async () => {
  const client = createClient({ url, stubsSecret: secret, headers: { authorization: `Bearer ${token}` } });
  const desk = await client.createAgent({
    definition: "desk",
    stubs: [
      { tool: "look", arguments: { order: "11" }, output: { paid: 80, isBroken: true }, times: 1 },
      { tool: "refund", arguments: { order: "11" }, output: "Refunded order 11.", times: 1 },
    ],
  });
  const turn = await (await desk.executeTurn("Order 11 arrived broken.")).settled();
  // A call that no stub answers ends the turn as failed, and its error names the nearest stub.
  expect(turn.result?.error).toBeNull();
  expect(turn.result?.output).toMatchObject({ isRefunded: true });
  expect(await desk.stubs()).toMatchObject({ unused: [], mismatches: [] });
});
