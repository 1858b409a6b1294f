import { describe, expect, test } from "vitest";
import { offlineModel } from "../../src/model/index.ts";
import { defaultClosingLine } from "../../src/model/offline-model.ts";
import type { Message, ModelRequest, ModelTool } from "../../src/state/index.ts";
import { conversation, tool, weather } from "./offline-conversation.ts";

const never = new AbortController().signal;

/** The engine's answer, without its closing line. */
async function answer(request: ModelRequest): Promise<string> {
  const { content } = await offlineModel().generate(request, { signal: never });
  return content.replace(defaultClosingLine, "").trim();
}

async function calls(text: string, tools: readonly ModelTool[]) {
  const response = await offlineModel().generate({ messages: conversation(["user", text]), tools }, { signal: never });
  return response.toolCalls.map((call) => [call.name, JSON.parse(call.arguments) as unknown]);
}

/** A request after a tool call was answered. */
function afterCall(
  text: string,
  tools: readonly ModelTool[],
  call: { name: string; arguments: string },
  result: string,
  isError = false,
): ModelRequest {
  const request = { callId: "t:1:0", providerId: "offline_0_0", ...call };
  const common = { createdAt: 0, origin: "tool" };
  const messages: Message[] = [
    ...conversation(["user", text]),
    { ...common, id: "a", role: "assistant", content: "", toolCalls: [request] },
    { ...common, id: "r", role: "tool", content: result, callId: "t:1:0", providerId: "offline_0_0", isError },
  ];
  return { messages, tools };
}

const add = tool("add", "Adds two numbers.", { a: { type: "number" }, b: { type: "number" } });
const mail = tool("send_mail", "Sends an e-mail to a person.", {
  email: { type: "string", format: "email" },
  subject: { type: "string" },
});
const clock = tool("current_time", "Tells what time it is now.", {});
const echo = tool("echo", "Repeats a text.", { text: { type: "string" } });
const total = tool("total", "Gives the total of numbers.", { numbers: { type: "array", items: { type: "number" } } });

function agentTool(name: string): ModelTool {
  return tool(name, `Delegates to the subagent ${name}.`, { input: { type: "string" } });
}

describe("plain tools", () => {
  test.each([
    ["Please add 2 and 3.5", [["add", { a: 2, b: 3.5 }]]],
    ["What is 17 + 25?", [["add", { a: 17, b: 25 }]]],
    ["What is the weather in Oslo?", [["get_weather", { city: "Oslo" }]]],
    ["Weather in Oslo, in fahrenheit please", [["get_weather", { city: "Oslo", unit: "fahrenheit" }]]],
    [
      "How is the weather in Oslo and in New York?",
      [
        ["get_weather", { city: "Oslo" }],
        ["get_weather", { city: "New York" }],
      ],
    ],
    [
      'Send a mail to ada@example.org with the subject "Engine ready"',
      [["send_mail", { email: "ada@example.org", subject: "Engine ready" }]],
    ],
    ["What time is it?", [["current_time", {}]]],
    ['echo "as it is"', [["echo", { text: "as it is" }]]],
    ["What is the total of 4, -7 and 1,250?", [["total", { numbers: [4, -7, 1250] }]]],
    ["get_weather with city: Lima", [["get_weather", { city: "Lima" }]]],
    ["Who wrote Faust?", []],
  ])("%s", async (text, expected) => {
    expect(await calls(text, [add, weather, mail, clock, echo, total])).toEqual(expected);
  });

  test("a call is made once, and its result is the answer", async () => {
    const text = "Please add 2 and 3";
    const call = { name: "add", arguments: '{"a":2,"b":3}' };
    expect(await answer(afterCall(text, [add], call, "5"))).toBe("add: 5");
    expect(await answer(afterCall(text, [add], call, "The sum is 5."))).toBe("The sum is 5.");
    expect(await answer(afterCall(text, [add], call, '{"sum":5}'))).toBe('add: {"sum":5}');
    expect(await answer(afterCall(text, [add], call, "overflow in cell 4", true))).toBe(
      "The tool add failed: overflow in cell 4",
    );
  });

  test("names what is missing for a call", async () => {
    expect(await answer({ messages: conversation(["user", "Add 2"]), tools: [add] })).toBe(
      "To call add I need b (number).",
    );
  });

  test("calls nothing if tools are forbidden", async () => {
    const response = await offlineModel().generate(
      { messages: conversation(["user", "Please add 2 and 3"]), tools: [add], toolChoice: "none" },
      { signal: never },
    );
    expect(response.toolCalls).toEqual([]);
    expect(response.finishReason).toBe("stop");
  });

  test("subagents get the task itself if there are no files, in parallel", async () => {
    expect(await calls("Compare the two papers", [agentTool("critic"), agentTool("historian")])).toEqual([
      ["critic", { input: "Compare the two papers" }],
      ["historian", { input: "Compare the two papers" }],
    ]);
    expect(await calls("Compare Oslo with Rome and Lima", [agentTool("critic")])).toEqual([
      ["critic", { input: "Compare Oslo with Rome and Lima" }],
    ]);
    expect(await calls("Ask the critic about the first paper", [agentTool("critic"), agentTool("historian")])).toEqual([
      ["critic", { input: "Ask the critic about the first paper" }],
    ]);
  });
});

/** The answer to a question that cannot be answered, with the missing words. */
function nothing(question: string, words: string): string {
  return `I cannot answer “${question}”: nothing in this conversation speaks of ${words}, and I know only what I am given.`;
}

describe("conversations", () => {
  test.each([
    [
      [
        ["user", "My name is Ada."],
        ["assistant", "Understood."],
        ["user", "What is my name?"],
      ],
      "My name is Ada.",
    ],
    [
      [
        ["user", "I'm Ada and I live in London."],
        ["assistant", "Hello."],
        ["user", "Where do I live?"],
      ],
      "I'm Ada and I live in London.",
    ],
    [
      [
        ["user", "My favourite colour is green."],
        ["assistant", "Noted."],
        ["user", "My favourite colour is blue."],
        ["assistant", "Noted."],
        ["user", "What is my favourite colour?"],
      ],
      "My favourite colour is blue.",
    ],
    [
      [
        ["system", "The office opens at nine. The cat is called Minka."],
        ["user", "What is the cat called?"],
      ],
      "My instructions say: The cat is called Minka.",
    ],
    [[["user", "My dog is brown."]], "You said: “My dog is brown.”"],
  ] as const)("%j", async (turns, expected) => {
    expect(await answer({ messages: conversation(...turns) })).toBe(expected);
  });

  test.each([
    ["Who has the key? Anna has the key. Bela has the map.", "Anna has the key."],
    ["Who has the map? Anna has the key. Bela has the map.", "Bela has the map."],
    ["Anna has the key. Bela has the map. Who has the key?", "Anna has the key."],
    ["Anna has the key. Who has the map? Bela has the map.", "Bela has the map."],
    [
      "Anna has the key. Who has it? Bela lost the map. Who lost the map?",
      `${nothing("Who has it?", "this")}\nBela lost the map.`,
    ],
    ["Who has it? Bela lost it. Anna has it. Bela wants it.", "Anna has it."],
    ["Bela has the key. Anna lost the key. Who has the key?", "Bela has the key."],
    ["Anna does not have the key. Bela has the key. Anna wants the key. Who has the key?", "Bela has the key."],
    ["Anna has the key. Bela doesn't have the key. Who does not have the key?", "Bela doesn't have the key."],
    ["What does Anna have? Anna has the key. Bela gave Anna a book. Bela has the map.", "Anna has the key."],
    ["What is in the box? The key is in the box. The box is red.", "The key is in the box."],
    ["What colour is the box? The key is in the box. The box is red.", "The box is red."],
    [
      "Where is the key? The key is old. The key is behind the door. Anna wants the key.",
      "The key is behind the door.",
    ],
    ["Where does Anna live? Anna lives in Rome. Anna likes Oslo. Bela lives in Lima.", "Anna lives in Rome."],
    [
      "When does the shop open? The shop opens early. The shop opens at nine o'clock.",
      "The shop opens at nine o'clock.",
    ],
    ["How many keys are there? There are keys. There are seven keys.", "There are seven keys."],
    [
      "Why is the door shut? The door is shut. The door is shut because it rains.",
      "The door is shut because it rains.",
    ],
    ["Who wrote the book? The book was written by Anna. Bela read the book.", "The book was written by Anna."],
    ["Is the key in the drawer? The drawer is old. The key is in the drawer.", "The key is in the drawer."],
    [
      "Who approves refunds? Bela has the map. Refunds need the approval of a manager.",
      "Refunds need the approval of a manager.",
    ],
    ["Tell me who has the key. Anna has the key. Bela has the map.", "Anna has the key."],
    ["Who has the key? Who has the map? Anna has the key. Bela has the map.", "Anna has the key.\nBela has the map."],
    ["Who has the key?\n\n- Anna has the key\n- Bela has the map", "Anna has the key"],
    ["Who has the lamp? Anna has the key. Bela has the map.", nothing("Who has the lamp?", "lamp")],
  ])("a message that contains its own facts: %s", async (text, expected) => {
    expect(await answer({ messages: conversation(["user", text]) })).toBe(expected);
  });

  test("facts of earlier messages are ranked by the question, in any order", async () => {
    const facts = ["Bela has the map.", "Anna has the key.", "Cleo wants the key.", "The key opens the cellar."];
    for (const [index] of facts.entries()) {
      const turned = [...facts.slice(index), ...facts.slice(0, index)];
      const messages = conversation(
        ...turned.flatMap((fact) => [["user", fact] as const, ["assistant", "Noted."] as const]),
        ["user", "Who has the key?"],
      );
      expect(await answer({ messages })).toBe("Anna has the key.");
    }
  });

  test("does not invent facts", async () => {
    const said = await answer({
      messages: conversation(
        ["user", "My name is Ada."],
        ["assistant", "Understood."],
        ["user", "How tall is the Eiffel tower?"],
      ),
    });
    expect(said).toContain("I cannot answer “How tall is the Eiffel tower?”");
    expect(said).not.toContain("Ada");
  });
});
