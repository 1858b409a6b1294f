// `troupe show` and `troupe list` of a session with stubs.
import { createRuntime } from "troupe";
import { sqliteStores } from "troupe/stores/sqlite";
import { expect, test } from "vitest";
import { serveStubs } from "../../../src/cli/serve/serve-stubs.ts";
import { temporaryFile } from "../../stores/temporary-file.ts";
import { look, rounds, stubbedDesk, stubs } from "../../support/stubbed-desk.ts";
import { troupe } from "../support/in-process.ts";

test("show has each stub with its uses, and the calls that none answered", async () => {
  const path = temporaryFile();
  const { desk } = stubbedDesk();
  const runtime = await createRuntime({ agents: [desk], stores: sqliteStores(path) });
  const agent = await runtime.agent("desk", { agentId: "shop", stubs });
  await agent.start();
  await agent.executeTurn(rounds(look("7"), look("9"))).result;
  await runtime.shutdown();
  const { out } = await troupe(["show", "shop", "--store", path], { COLUMNS: "200" });
  const start = out.indexOf("Stubs, in the place of all tools:");
  expect(out.slice(start + 1, start + 6)).toEqual([
    '1. look {"order":"7"} → {"broken":true}; used 1 of 1',
    '2. look {"order":"7"} → {"broken":false}; used 0',
    '3. look {"order":"8"} → error: no such order; used 0',
    '4. pay → "stubbed payment"; used 0',
    expect.stringContaining('The call look({"order":"9"}) of agent "desk" matches no stub.'),
  ]);
  const json = await troupe(["show", "shop", "--store", path, "--json"]);
  expect(JSON.parse(json.out.join("\n"))).toMatchObject({
    stubs: { stubs: [{ used: 1 }, {}, {}, {}], mismatches: [{}] },
  });
  expect((await troupe(["list", "--store", path], { COLUMNS: "200" })).out.join("\n")).toMatch(/ stubbed$/m);
});

test("serve takes the secret from the environment", () => {
  expect(serveStubs({ TROUPE_STUBS_SECRET: " a-secret-of-the-tests " })).toEqual({ secret: "a-secret-of-the-tests" });
  expect([serveStubs({}), serveStubs({ TROUPE_STUBS_SECRET: "" })]).toEqual([undefined, undefined]);
});
