import { describe, expect, test } from "vitest";
import { entriesOfType, toolTextsOf } from "../support/journal-probes.ts";
import { callerOf, connected, type McpCaller, openDesk, ways } from "./served-desk.ts";

const noTime = { timeout: 60_000 };

/** How the calls of a turn ended, by the tool's text or the outcome's. */
async function endsOf({ agent, stores }: McpCaller): Promise<(readonly [outcome: string, text: string])[]> {
  await agent.executeTurn("go").result;
  const settled = await entriesOfType(stores, "caller", "tool.settled");
  const texts = await toolTextsOf(agent);
  return settled.map(({ outcome }, index) => [outcome, texts[index] ?? ""] as const);
}

function fail(code: number) {
  return { name: "far__fail", arguments: { code } };
}

describe.each(ways)("what the end of a once call means, over %s", (way) => {
  const work = { name: "far__work" };

  test.each([
    [-32_601, "error", /did not run the tool/],
    [-32_602, "error", /did not run the tool/],
    // Servers of the modern era have no such error; the official package makes it -32603.
    ...(way.endsWith("modern") ? [] : [[-32_042, "error", /did not run the tool/] as const]),
    [-32_603, "outcome_unknown", /not known.*It is not repeated/],
    [-32_000, "outcome_unknown", /not known.*It is not repeated/],
    [-31_999, "outcome_unknown", /not known.*It is not repeated/],
  ] as const)("error %d: %s", noTime, async (code, outcome, words) => {
    const desk = await openDesk(way, "faults");
    const { tools } = await connected({ name: "far", ...desk.options });
    const [end] = await endsOf(await callerOf(tools, [fail(code)]));
    expect(end).toEqual([outcome, expect.stringMatching(words)]);
    expect(desk.effects()).toEqual(["fail"]);
    // The connection stays.
    expect(await endsOf(await callerOf(tools, [work]))).toEqual([["success", "worked"]]);
  });

  test("isError: it ran, and failed", noTime, async () => {
    const desk = await openDesk(way, "faults");
    const { tools } = await connected({ name: "far", ...desk.options });
    const ends = await endsOf(await callerOf(tools, [{ name: "far__refuse" }]));
    expect(ends).toEqual([["error", "there is no paper"]]);
  });

  test("the time limit: unknown, cancelled at the server, and the connection stays", noTime, async () => {
    const desk = await openDesk(way, "faults");
    const { tools } = await connected({ name: "far", ...desk.options, tools: { hang: { timeoutMs: 300 } } });
    const [end] = await endsOf(await callerOf(tools, [{ name: "far__hang" }]));
    expect(end?.[0]).toBe("outcome_unknown");
    await expect.poll(desk.effects).toEqual(["hang", "cancelled"]);
    expect(await endsOf(await callerOf(tools, [work]))).toEqual([["success", "worked"]]);
  });

  test("an abort of the turn: cancelled at the server, and the connection stays", noTime, async () => {
    const desk = await openDesk(way, "faults");
    const { tools } = await connected({ name: "far", ...desk.options });
    const { agent, stores } = await callerOf(tools, [{ name: "far__hang" }]);
    const turn = agent.executeTurn("go");
    await expect.poll(desk.effects).toEqual(["hang"]);
    await turn.abort("enough");
    expect((await turn.result).status).not.toBe("completed");
    await expect.poll(desk.effects).toEqual(["hang", "cancelled"]);
    const settled = await entriesOfType(stores, "caller", "tool.settled");
    expect(settled.every(({ outcome }) => outcome !== "success")).toBe(true);
    expect(await endsOf(await callerOf(tools, [work]))).toEqual([["success", "worked"]]);
  });

  test("the end of the server in the middle of a call: unknown at once", noTime, async () => {
    const desk = await openDesk(way, "faults");
    const { tools } = await connected({ name: "far", ...desk.options });
    const caller = await callerOf(tools, [{ name: "far__hang" }]);
    const ends = endsOf(caller);
    await expect.poll(desk.effects).toEqual(["hang"]);
    if (way.startsWith("stdio")) await endsOf(await callerOf(tools, [{ name: "far__crash" }]));
    else await desk.restart();
    expect((await ends).map(([outcome]) => outcome)).toEqual(["outcome_unknown"]);
    expect(await endsOf(await callerOf(tools, [work]))).toEqual([["success", "worked"]]);
  });
});
