import { afterEach, beforeEach, expect, test } from "vitest";
import { decideStored } from "../../../src/cli/commands/decide.ts";
import { allRequests, placedRequests, findRequest } from "../../../src/cli/job/find-request.ts";
import type { Runtime } from "../../../src/index.ts";
import { type Asking, askingRuntime, payment, questionOf } from "../support/asking.ts";

let asking: Asking;
let runtime: Runtime;
beforeEach(async () => {
  asking = await askingRuntime([payment("Ann", 1), questionOf("Which day?")]);
  runtime = asking.runtime;
});
afterEach(() => asking.close());

async function ask(agentId: string): Promise<void> {
  const agent = await runtime.agent("cashier", { agentId });
  await agent.start();
  await agent.executeTurn("Pay.").settled;
}

async function find(text: string | undefined, verdict: "approved" | "answered"): Promise<string> {
  return (await findRequest(runtime.stores, text, verdict)).requestId;
}

test("a request is found by its id, by a unique start of it, or as the only one that this decision fits", async () => {
  await ask("till");
  expect(await find("till#1:1:0:1", "approved")).toBe("till#1:1:0:1");
  expect(await find("till#1:1:1", "approved")).toBe("till#1:1:1:1");
  expect(await find(undefined, "approved")).toBe("till#1:1:0:1");
  expect(await find(undefined, "answered")).toBe("till#1:1:1:1");
  await expect(find("till", "approved")).rejects.toThrow(
    "2 requests match; name one of them: till#1:1:0:1, till#1:1:1:1",
  );
  await expect(find("x", "approved")).rejects.toThrow('there is no request "x" in this store');
  await expect(find("", "approved")).rejects.toThrow("there is no request");
});

test("open requests come before decided ones, which are found too and reported with their decision", async () => {
  await ask("till");
  await decideStored(runtime.stores, "till#1:1:0:1", { verdict: "rejected", by: "anna" });
  expect((await findRequest(runtime.stores, "till", "approved")).requestId).toBe("till#1:1:1:1");
  expect((await findRequest(runtime.stores, "till#1:1:0", "approved")).decision?.by).toBe("anna");
  await expect(findRequest(runtime.stores, undefined, "approved")).rejects.toThrow(
    "no open request of this store can be approved",
  );
  await expect(decideStored(runtime.stores, "till#1:1:0:1", { verdict: "approved" })).rejects.toMatchObject({
    code: "request_conflict",
    message: 'request "till#1:1:0:1" was rejected by anna',
  });
});

test("all are listed, however many pages they fill, each with its path", async () => {
  const ids = Array.from({ length: 101 }, (_, index) => `till-${index}`);
  for (const id of ids) await ask(id);
  const open = await allRequests(runtime.stores, { status: "open" });
  expect(open).toHaveLength(202);
  expect(new Set(open.map(({ requestId }) => requestId)).size).toBe(202);
  const [first] = await placedRequests(runtime.stores, open.slice(0, 1));
  expect(first?.path).toBe("cashier till-0");
});
