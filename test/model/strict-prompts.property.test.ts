import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { assembleMessages, fullHistory, reactHistory, windowHistory, withoutTraces } from "../../src/context/index.ts";
import { wireBody } from "../../src/model/openai-wire.ts";
import type { Message } from "../../src/state/index.ts";
import { brokenConversation, wholeConversation } from "../context/arbitrary-histories.ts";

interface Sent {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly content: string | null | readonly { readonly type: string; readonly text?: string }[];
  readonly tool_calls?: readonly { readonly id: string }[];
  readonly tool_call_id?: string;
}

const reader = { provider: "p", model: "m", server: "s" };

/** Role sequences that Mistral, Gemma, Llama, Qwen, DeepSeek and Anthropic all accept. */
const followers: Readonly<Record<Sent["role"] | "nothing", readonly Sent["role"][]>> = {
  nothing: ["system", "user"],
  system: ["user"],
  user: ["assistant"],
  assistant: ["user", "tool"],
  tool: ["tool", "assistant"],
};

/** The reason why a strict server or chat template refuses the prompt; `undefined` if it accepts it. */
function faultOf(messages: readonly Sent[]): string | undefined {
  const ids = new Set<string>();
  let due: string[] = [];
  let before: Sent["role"] | "nothing" = "nothing";
  for (const [index, { role, content, tool_calls: calls, tool_call_id: answered }] of messages.entries()) {
    if (!followers[before].includes(role)) return `message ${index}: ${role} after ${before}`;
    const texts = typeof content === "string" ? [content] : (content ?? []).map(({ text }) => text ?? "image");
    const isEmpty = texts.length === 0 || texts.some((text) => text.trim() === "");
    if (isEmpty && !(content === null && calls)) return `message ${index}: ${role} without content`;
    if (calls?.length === 0) return `message ${index}: an empty list of calls`;
    if (answered !== undefined) {
      if (due.shift() !== answered) return `message ${index}: a result that is not due`;
    } else if (due.length > 0) return `message ${index}: ${role} where the result of ${due[0]} is due`;
    for (const { id } of calls ?? []) {
      if (ids.has(id)) return `message ${index}: ${id} comes twice`;
      ids.add(id);
    }
    if (calls) due = calls.map(({ id }) => id);
    before = role;
  }
  if (due.length > 0) return "calls without results at the end";
  return before === "user" || before === "tool" ? undefined : `${before} at the end`;
}

const image = { type: "image", url: "data:image/png;base64,AA==" } as const;
const contents: readonly Message["content"][] = [
  "",
  " \n",
  "text",
  [],
  [{ type: "text", text: " " }],
  [{ type: "text", text: "see" }, image],
  [image],
];

/** The messages with other contents, and more messages of users and systems anywhere. */
const changes = fc.array(
  fc.record({
    at: fc.nat(),
    content: fc.constantFrom(...contents),
    role: fc.constantFrom("user" as const, "system" as const, "assistant" as const, undefined),
  }),
  { maxLength: 12 },
);

function changed(history: readonly Message[], list: typeof changes extends fc.Arbitrary<infer List> ? List : never) {
  const messages = [...history];
  for (const [number, { at, content, role }] of list.entries()) {
    const index = at % (messages.length + 1);
    const message = messages[index];
    if (role) messages.splice(index, 0, { role, id: `more:${number}`, createdAt: 0, content, origin: "user" });
    else if (message) messages[index] = { ...message, content };
  }
  return messages;
}

const compilers = [
  fullHistory(),
  withoutTraces(),
  windowHistory(3),
  windowHistory(1),
  reactHistory({ contextWindowSize: 2 }),
];
const conversation = fc.oneof(wholeConversation, brokenConversation);
const options = {
  stream: false,
  outputLimitField: "max_tokens",
  extraBody: {},
  reader,
  keepsForeignIds: false,
} as const;
/** The messages as a server reads them. */
const sentOf = (messages: readonly Message[]) =>
  JSON.parse(JSON.stringify(wireBody({ messages }, options)["messages"])) as readonly Sent[];

describe("the prompt of any conversation", () => {
  it("is accepted by strict servers and templates, with every compiler", () => {
    fc.assert(
      fc.property(
        conversation,
        changes,
        fc.constantFrom(...compilers),
        fc.constantFrom("", "Be brief."),
        ({ history, turnId }, list, compiler, instructions) => {
          const input = {
            history: changed(history, list),
            turnId,
            contextWindowSize: null,
            loadedCallIds: [],
            earlier: [],
          };
          const messages = assembleMessages({ instructions, compiler, input, patches: [] });
          const sent = sentOf(messages);
          expect(sent.length === 0 ? undefined : faultOf(sent)).toBeUndefined();
        },
      ),
      { numRuns: 300 },
    );
  });

  it("contains every text of a conversation", () => {
    fc.assert(
      fc.property(wholeConversation, changes, ({ history, turnId }, list) => {
        const input = {
          history: changed(history, list),
          turnId,
          contextWindowSize: null,
          loadedCallIds: [],
          earlier: [],
        };
        const messages = assembleMessages({ instructions: "Be brief.", compiler: fullHistory(), input, patches: [] });
        const text = JSON.stringify(sentOf(messages));
        const texts = messages.flatMap(({ content }) => (typeof content === "string" ? content : []));
        for (const said of texts) expect(text).toContain(JSON.stringify(said.trim() === "" ? "" : said).slice(1, -1));
      }),
    );
  });
});
