import { InvalidArgumentError } from "commander";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { collectDefinitions, defineAgent, subagent } from "../../../src/agents/index.ts";
import { queuePlan, queuesOfDefinitions, queueText, workOfQueues } from "../../../src/cli/worker/queue-plan.ts";
import { InvalidInputError } from "../../../src/errors/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { defineTool } from "../../../src/tools/index.ts";

describe("--queues", () => {
  test.each([
    ["a", { a: {} }],
    ["a, b=4", { a: {}, b: { concurrency: 4 } }],
    ["scan=2@30/m", { scan: { concurrency: 2, rateLimit: { max: 30, perMs: 60_000 } } }],
    ["s=1@5/s,h=1@7/h", { s: limited(5, 1_000), h: limited(7, 3_600_000) }],
    ["none", {}],
  ])("%s", (text, plan) => {
    expect(queuePlan(text)).toEqual(plan);
  });

  test.each([
    ["", /"" is not of the form NAME, NAME=CONCURRENCY/],
    ["a,", /"" is not of the form/],
    ["a=", /"a=" is not of the form/],
    ["a=two", /"a=two" is not of the form/],
    ["a b", /"a b" is not of the form/],
    ["a=1@5/d", /units s, m and h/],
    ["a=0", /"a=0" would never run/],
    ["a=1@0/s", /would never run/],
    ["a,a=2", /"a" is named twice/],
    ["wake=3", /the queue of the agents; see --concurrency/],
  ])("%j is refused with the reason", (text, why) => {
    expect(() => queuePlan(text)).toThrow(InvalidArgumentError);
    expect(() => queuePlan(text)).toThrow(why);
  });
});

function limited(max: number, perMs: number) {
  return { concurrency: 1, rateLimit: { max, perMs } };
}

const tool = (name: string, queue?: string) =>
  defineTool({
    name,
    description: name,
    parameters: z.object({}),
    execute: () => "",
    ...(queue === undefined ? {} : { queue }),
  });
const model = scriptedModel("Hello.");
const below = defineAgent({ name: "below", model, tools: [tool("mail", "mail"), tool("plain")] });
const above = defineAgent({
  name: "above",
  model,
  tools: [tool("visit", "browser"), tool("look", "browser"), subagent(below)],
});

describe("the queues of an agent file", () => {
  test("are those of its tools, including its subagents'", () => {
    expect(queuesOfDefinitions(collectDefinitions([above]).values())).toEqual(["browser", "mail"]);
  });

  test("are all worked on by default", () => {
    expect(workOfQueues(undefined, ["browser", "mail"])).toEqual({ browser: {}, mail: {} });
    expect(workOfQueues({ mail: { concurrency: 3 } }, ["browser", "mail"])).toEqual({ mail: { concurrency: 3 } });
    expect(workOfQueues({}, ["browser"])).toEqual({});
  });

  test("are the only allowed ones: jobs of another could not be run", () => {
    expect(() => workOfQueues({ male: {} }, ["browser", "mail"])).toThrow(InvalidInputError);
    expect(() => workOfQueues({ male: {} }, ["browser", "mail"])).toThrow(
      '--queues names "male", but no tool of these agents has that queue; they have "browser", "mail"',
    );
    expect(() => workOfQueues({ male: {} }, [])).toThrow("they have none");
  });
});

test("the description of a queue", () => {
  expect(queueText(["mail", {}])).toBe("mail (1 at a time)");
  expect(queueText(["scan", { concurrency: 2, rateLimit: { max: 30, perMs: 60_000 } }])).toBe(
    "scan (2 at a time, at most 30 started in 60 s)",
  );
});
