import { afterEach, describe, expect, test } from "vitest";
import { type PersonsReply, TerminalRequests } from "../../../src/cli/inline/terminal-requests.ts";
import type { AgentRequest } from "../../../src/index.ts";
import { type Asking, askingRuntime, payment, questionOf } from "../support/asking.ts";

let asking: Asking | undefined;
afterEach(async () => {
  await asking?.close();
  asking = undefined;
});

type Person = (request: AgentRequest, signal: AbortSignal) => PersonsReply | Promise<PersonsReply>;

type Calls = Parameters<typeof askingRuntime>[0];
type Rule = Parameters<typeof askingRuntime>[1];

/** An agent that opens requests, with this person at the terminal. */
async function seated(...[calls, person, mayDecide]: readonly [Calls, Person, Rule?]) {
  asking = await askingRuntime(calls, mayDecide);
  const { runtime } = asking;
  const asked: string[] = [];
  const said: string[] = [];
  let conversations = 0;
  const desk = new TerminalRequests({
    runtime,
    rootAgentId: "till",
    by: "anna",
    commandsFor: ({ requestId }) => [`troupe approve ${requestId} --by NAME`],
    converse: () => {
      conversations += 1;
      return {
        ask: async (request, signal) => {
          asked.push(request.prompt);
          return await person(request, signal);
        },
        say: (line) => said.push(line),
        close: () => (conversations -= 1),
      };
    },
  });
  runtime.subscribe((event) => desk.event(event));
  const agent = await runtime.agent("cashier", { agentId: "till" });
  await agent.start();
  const turnId = await agent.executeTurn("Pay them.").id;
  const rest = () => desk.rest(() => agent.turn(turnId).settled);
  return { ...asking, agent, desk, rest, asked, said, openConversations: () => conversations };
}

describe("the person at the terminal", () => {
  test("is asked about each request once, and the turn continues with the decisions", async () => {
    const replies: PersonsReply[] = [{ verdict: "approved" }, { verdict: "rejected", reason: "too much" }];
    const calls = [payment("Ann", 1), payment("Bo", 2)];
    const { rest, paid, asked, said, runtime, openConversations } = await seated(
      calls,
      () => replies.shift() ?? "ended",
    );
    expect(await rest()).toMatchObject({ status: "completed", text: "paid 1 to Ann; Rejected by user: too much" });
    expect(paid).toEqual(["Ann 1"]);
    expect(asked).toEqual(['pay({"to":"Ann","amount":1})', 'pay({"to":"Bo","amount":2})']);
    expect(said).toEqual(["Request 1 of 2:", "Request 2 of 2:"]);
    expect(openConversations()).toBe(0);
    const decided = await runtime.requests({ status: "decided" });
    expect(decided.map(({ decision }) => decision?.by)).toEqual(["anna", "anna"]);
  });

  test("may postpone one: the others continue, and it can be asked again", async () => {
    let isPutOff = true;
    const person: Person = ({ name }) => (name === "pay" && isPutOff ? "later" : decisionOn(name));
    const { rest, paid, desk } = await seated([payment("Ann", 1), questionOf("Which day?")], person);
    expect(await rest()).toMatchObject({ status: "waiting", requests: [{ name: "pay" }] });
    expect(await rest()).toMatchObject({ status: "waiting" });
    expect(paid).toEqual([]);
    isPutOff = false;
    desk.askAgain();
    expect(await rest()).toMatchObject({ status: "completed", text: "paid 1 to Ann; on Friday" });
  });

  test("is asked nothing more after leaving", async () => {
    const { rest, asked } = await seated([payment("Ann", 1), payment("Bo", 2)], () => "ended");
    expect(await rest()).toMatchObject({ status: "waiting", requests: [{}, {}] });
    expect(asked).toHaveLength(1);
  });

  test("is told why an edit is invalid, and is asked again", async () => {
    const replies: PersonsReply[] = [
      { verdict: "edited", arguments: { to: 5 } },
      { verdict: "edited", arguments: { to: "Cy", amount: 3 } },
    ];
    const { rest, paid, said } = await seated([payment("Ann", 1)], () => replies.shift() ?? "ended");
    expect(await rest()).toMatchObject({ status: "completed", text: "paid 3 to Cy" });
    expect(paid).toEqual(["Cy 3"]);
    expect(said).toEqual([expect.stringContaining("do not fit")]);
  });

  test("without the right to decide is told how another person does, and the turn continues after that", async () => {
    const outrunAtLast: Person = (request, signal) =>
      asked.length === 1 ? { verdict: "approved" } : outrun(request, signal);
    const { rest, paid, said, asked } = await seated([payment("Ann", 1)], outrunAtLast, ({ by }) => by === "bo");
    expect(await rest()).toMatchObject({ status: "completed", text: "paid 1 to Ann" });
    expect(paid).toEqual(["Ann 1"]);
    expect(asked).toHaveLength(2);
    expect(said.slice(0, 3)).toEqual([
      'anna may not decide request "till#1:1:0:1"',
      expect.stringContaining("This process waits."),
      "    troupe approve till#1:1:0:1 --by NAME",
    ]);
  });

  test("is no longer asked about a request decided elsewhere", async () => {
    const { rest, paid, said } = await seated([payment("Ann", 1)], outrun);
    expect(await rest()).toMatchObject({ status: "completed", text: "paid 1 to Ann" });
    expect(paid).toEqual(["Ann 1"]);
    expect(said).toEqual([expect.stringContaining("decided elsewhere")]);
  });

  test("is told whose decision came first if theirs is too late", async () => {
    const { rest, paid, said } = await seated([payment("Ann", 1)], late);
    expect(await rest()).toMatchObject({ status: "completed", text: "Rejected by user." });
    expect(paid).toEqual([]);
    expect(said).toEqual(['request "till#1:1:0:1" was rejected by bo']);
  });
});

function decisionOn(name: string): PersonsReply {
  return name === "pay" ? { verdict: "approved" } : { verdict: "answered", result: "on Friday" };
}

/** Another client decides first, while this person is still being asked. */
const outrun: Person = async ({ requestId }, signal) => {
  await asking?.runtime.decide(requestId, { verdict: "approved", by: "bo" });
  await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
  return "aborted" as const;
};

/** Answers although another client decided first. */
const late: Person = async ({ requestId }) => {
  await asking?.runtime.decide(requestId, { verdict: "rejected", by: "bo" });
  return { verdict: "approved" } as const;
};
