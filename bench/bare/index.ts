import OpenAI, { type ClientOptions } from "openai";
import type { Contender, Conversation } from "../contender.ts";
import { instructions, type Scenario } from "../scenario.ts";
import { type BareTool, type ChatMessage, runLoop } from "./loop.ts";
import { type Durability, openMessageTable } from "./sqlite-messages.ts";
import { runStream } from "./stream.ts";
import { childTool, lookupTool } from "./tools.ts";

function toolsOf(scenario: Scenario, client: OpenAI): readonly BareTool[] {
  if (scenario.agent === "tools") return [lookupTool];
  if (scenario.agent === "lead") return [childTool(client, scenario.childModel ?? "")];
  return [];
}

/** The `openai` client with its defaults (fetch, iterator, retries) and a messages array: nothing is stored or limited. */
export const bare: Contender = bareWith({});

/** The same with other tools than the scenario's. */
export function bareWithTools(tools: readonly BareTool[]): Contender {
  return bareWith({}, tools);
}

/** The same with another fetch. */
export function bareOver(fetching: typeof fetch): Contender {
  return bareWith({ fetch: fetching });
}

function bareWith(options: ClientOptions, given?: readonly BareTool[]): Contender {
  return {
    name: "bare",
    prepare: async (scenario, baseUrl) => {
      const client = new OpenAI({ apiKey: "none", baseURL: baseUrl, ...options });
      const tools = given ?? toolsOf(scenario, client);
      const open = (): Conversation => {
        const messages: ChatMessage[] = [{ role: "system", content: instructions }];
        return {
          turn: async (input) => {
            messages.push({ role: "user", content: input });
            if (scenario.agent === "streaming") return await runStream(client, scenario.model, messages);
            return await runLoop({ client, model: scenario.model, tools }, messages);
          },
        };
      };
      return { open, close: async () => undefined };
    },
  };
}

/** The same, but each message is written to a table in its own transaction before the loop continues. */
export function bareOnSqlite(durability: Durability): Contender {
  return {
    name: `bare, ${durability}`,
    prepare: async (scenario, baseUrl) => {
      const client = new OpenAI({ apiKey: "none", baseURL: baseUrl });
      const tools = toolsOf(scenario, client);
      const table = openMessageTable(durability);
      let opened = 0;
      const open = (): Conversation => {
        const messages: ChatMessage[] = [];
        const conversation = ++opened;
        let position = 0;
        const keep = (message: ChatMessage): void => table.insert(conversation, ++position, message);
        const add = (message: ChatMessage): void => {
          messages.push(message);
          keep(message);
        };
        add({ role: "system", content: instructions });
        return {
          turn: async (input) => {
            add({ role: "user", content: input });
            return await runLoop({ client, model: scenario.model, tools, keep }, messages);
          },
        };
      };
      return { open, close: async () => table.close() };
    },
  };
}
