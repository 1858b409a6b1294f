// Long conversations: a history compiler selects the messages of a call, the model loads older ones by itself, and
// autoCompact bounds the conversation.
import { createAgent, dropOldest, reactHistory, textOf } from "troupe";
import { scriptedModel } from "troupe/testing";

// The model sees the last 4 messages. For older ones it loads more of the history, which does not count as a tool call.
const librarian = scriptedModel(({ messages, tools }) => {
  const said = messages.filter(({ role }) => role === "user").map(({ content }) => textOf(content));
  const question = said.at(-1) ?? "";
  if (!question.startsWith("What was")) return `Noted: ${question}`;
  const first = said.find((text) => text.includes("first"));
  if (first === undefined && tools?.some(({ name }) => name === "load_history")) {
    return { toolCalls: [{ name: "load_history" }] };
  }
  return `You said: ${first ?? "I do not know"}`;
});

const reader = await createAgent({
  model: librarian,
  history: reactHistory({ contextWindowSize: 4, expandBy: 4 }),
});
await reader.start();
for (const note of ["my first note", "a second", "a third", "a fourth"]) await reader.executeTurn(note).result;
const { text, steps } = await reader.executeTurn("What was my note?").result;
console.log(
  `${text} (${steps} steps, shown: ${librarian.calls.map(({ messages }) => messages.length).join(", ")} messages)`,
);
await reader.runtime.shutdown();

// After 8 messages, the model no longer sees all but the newest 4. The store keeps them.
const chatty = scriptedModel(({ messages }) => `I see ${messages.length}`);
const talker = await createAgent({
  model: chatty,
  maxMessages: 8,
  autoCompact: { strategy: dropOldest({ keep: 4 }) },
});
await talker.start();
for (let turn = 1; turn <= 7; turn += 1) {
  const running = talker.executeTurn(`message ${turn}`);
  for await (const event of running) {
    if (event.type === "context.compacted") console.log(`turn ${turn}: ${event.messages} messages left out`);
  }
  console.log(`turn ${turn}: ${(await running.result).text}`);
}
console.log(`stored: ${(await talker.getMessages()).length} messages`);
await talker.runtime.shutdown();
