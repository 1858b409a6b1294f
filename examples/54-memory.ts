// Memory with search: one agent remembers, another one of the same owner recalls it at the beginning of its turn.
import { createRuntime, defineAgent, textOf } from "troupe";
import { memory, sqliteMemory } from "troupe/kit";
import { scriptedModel } from "troupe/testing";

const store = sqliteMemory({ file: ":memory:" }); // usually the path of a file
const remembering = memory({ store, scope: "owner" });

const clerk = defineAgent({
  name: "clerk",
  model: scriptedModel([
    { toolCalls: [{ name: "remember", arguments: { text: "Ada is allergic to nuts." } }] },
    "I will remember that.",
  ]),
  plugins: [remembering],
});
const baker = defineAgent({
  name: "baker",
  model: scriptedModel(({ messages }) =>
    messages.some(({ content }) => textOf(content).includes("allergic to nuts")) ? "A lemon cake." : "A nut cake.",
  ),
  plugins: [remembering],
});

const runtime = await createRuntime({ agents: [clerk, baker] });
const first = await runtime.agent("clerk", { ownerId: "ada" });
await first.start();
console.log((await first.executeTurn("I am allergic to nuts.").result).text);

const second = await runtime.agent("baker", { ownerId: "ada" });
await second.start();
console.log((await second.executeTurn("Which cake is for me, with or without nuts?").result).text);
for (const { origin, role, content } of await second.getMessages()) {
  if (origin === "hook:memory") console.log(`\n${role}: ${textOf(content)}`);
}

// A request for deletion: the agents of the owner, and then what they remembered.
await runtime.deleteOwner("ada");
await store.forget({ tenant: "default", scope: "owner", id: "ada" }, "all");
await runtime.shutdown();
await store.close();
