// Turns at fixed times: a report every morning in Berlin, a reminder that an agent sets for itself, and a pause. A clock of the test
// tools passes the days.
import { createRuntime, defineAgent, memoryStores, scheduleTurn, textOf } from "troupe";
import { createFakeClock, scriptedModel } from "troupe/testing";

const HOUR = 60 * 60 * 1000;
const clock = createFakeClock(new Date("2026-03-27T12:00:00Z"));
const stores = memoryStores();

const reporter = defineAgent({ name: "reporter", model: scriptedModel("All quiet.") });
const helper = defineAgent({
  name: "helper",
  tools: [...scheduleTurn({ maxOpen: 3 })],
  model: scriptedModel([
    { toolCalls: [{ name: "schedule_turn", arguments: { message: "Is the build green?", in: "20m" } }] },
    "I will look in 20 minutes.",
    "The build is green.",
  ]),
});

const runtime = await createRuntime({ agents: [reporter, helper], stores, clock });

/** Passes time, and waits for the turns that end meanwhile. */
async function pass(ms: number, turns: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let ended = 0;
  const watching = runtime.subscribe((event) => {
    if (event.type !== "turn.completed") return;
    ended += 1;
    console.log(`${new Date(clock.now()).toISOString()} ${event.turnId}`);
    if (ended === turns) resolve();
  });
  for (let left = ms; left > 0; left -= HOUR) clock.advance(Math.min(left, HOUR));
  await promise;
  watching.unsubscribe();
}

// Called at every start of a program: the same options change nothing.
const report = { agent: reporter, input: "Write the report.", cron: "0 9 * * *", timezone: "Europe/Berlin" };
await runtime.schedule("report", { ...report, ifMissed: "once", budget: { maxSteps: 5 } });

// The clocks in Berlin change on March 29; 9:00 stays 9:00.
await pass(20 * HOUR, 1);
await pass(23 * HOUR, 1);

const agent = await runtime.agent(helper, { agentId: "helper-1" });
await agent.start();
console.log((await agent.executeTurn("Remind me to look at the build.").result).text);
await pass(HOUR / 3, 1);
console.log(textOf((await agent.getMessages()).at(-1)?.content ?? ""));

// A paused schedule opens no turns and misses none.
await runtime.schedules.pause("report");
for (let hours = 0; hours < 3 * 24; hours += 1) clock.advance(HOUR);
await runtime.schedules.resume("report");
for (const { key, nextAt, counts } of await runtime.schedules.list()) {
  const next = nextAt === null ? "none" : new Date(nextAt).toISOString();
  console.log(`${key}: next ${next}, ${counts.opened} opened, ${counts.missed} missed`);
}
await runtime.unschedule("report");
await runtime.shutdown();
