/**
 * An agent file for commands: a `once` tool that writes the id of its process to `effects.txt`, and an answer after it, which waits until a file
 * `go-on` is in the folder.
 */
import { appendFileSync, existsSync, watch } from "node:fs";
import { defineAgent, defineTool } from "troupe";
import { scriptedModel } from "troupe/testing";
import { z } from "zod";

async function released(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const watcher = watch(".", () => existsSync("go-on") && resolve());
  if (existsSync("go-on")) resolve();
  await promise;
  watcher.close();
}

const pay = defineTool({
  name: "pay",
  description: "Pays.",
  parameters: z.object({}),
  effect: "once",
  execute: () => {
    appendFileSync("effects.txt", `${process.pid}\n`);
    return "paid";
  },
});

export const agent = defineAgent({
  name: "slow",
  tools: [pay],
  model: scriptedModel(({ messages }) => {
    if (messages.at(-1)?.role !== "tool") return { toolCalls: [{ name: "pay", arguments: {} }] };
    appendFileSync("asked.txt", `${process.pid}\n`);
    return { text: "Ann is paid.", delayUntil: released() };
  }),
});
