import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { documentModel } from "../../src/demo/document-model.ts";
import { leadInstructions, readerInstructions, readerPrompt } from "../../src/demo/team.ts";
import { defaultClosingLine } from "../../src/model/index.ts";
import type { Message } from "../../src/state/index.ts";
import { loopTools, runAgent, runTeam, statementsIn, temporaryFolder } from "./team-loop.ts";

const garden = {
  "README.md": `# Allotment handbook

How the allotments at Mill Lane are run. Each chapter is a file of its own.
`,
  "water.md": `# Water

## The pump

The pump draws rain water from the cistern. It runs from
May to September; in winter it is drained, because frost
would burst its housing.

## Hours

Members may water before 9:00 and after 19:00. On Sundays the pump is switched off.

| Month | Litres per plot |
|-------|-----------------|
| June  | 800             |
| July  | 1200            |
`,
  "rules/fees.md": `# Fees

The yearly fee is 85 euros for a whole plot. Half plots cost 50 euros.
Whoever pays after 1 March pays a surcharge of 10 euros.

To pay:

1. Ask the treasurer for a form.
2. Send it to the office.
`,
  "rules/animals.md": `---
title: Animals
---

Animals
=======

Dogs must be kept on a lead, e.g. on the paths. Hens are allowed, up to
six for each plot. A hen house may not be higher than 1.50 m.

\`\`\`sh
register-hens --plot 12
\`\`\`
`,
  "notes.txt": "The treasurer is Ms. Okafor. She is in the office on Fridays.\n",
};

describe("a team over a folder", () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  beforeAll(async () => {
    folder = await temporaryFolder(garden);
  });
  afterAll(() => folder.remove());

  test.each([
    {
      question: "Why is the pump drained in winter?",
      first: "It runs from May to September; in winter it is drained, because frost would burst its housing.",
      source: "water.md:5",
    },
    {
      question: "How much is the yearly fee for a whole plot?",
      first: "The yearly fee is 85 euros for a whole plot.",
      source: "rules/fees.md:3",
    },
    {
      question: "How many hens are allowed?",
      first: "Hens are allowed, up to six for each plot.",
      source: "rules/animals.md:8",
    },
    { question: "Who is the treasurer?", first: "The treasurer is Ms. Okafor.", source: "notes.txt:1" },
    {
      question: "What happens to whoever pays after March?",
      first: "Whoever pays after 1 March pays a surcharge of 10 euros.",
      source: "rules/fees.md:4",
    },
    { question: "Which litres per plot hold for July?", first: "July | 1200", source: "water.md:16" },
    {
      question: 'What is said about "hen house"?',
      first: "A hen house may not be higher than 1.50 m.",
      source: "rules/animals.md:9",
    },
  ])("$question", async ({ question, first, source }) => {
    const { answer } = await runTeam(folder.root, question);
    const [best] = statementsIn(answer);
    expect(best?.text).toBe(first);
    expect(`${best?.path}:${best?.line}`).toBe(source);
    expect(answer).toContain(`“${question.replaceAll(/\s+/g, " ")}”`);
  });

  test.each([
    {
      question: "Who approves refunds?",
      text: "Refunds above 200 euros need the approval of a manager.",
    },
    { question: "Who deploys the shop?", text: "Each deployment of the shop is done by the operator on duty." },
    { question: "Which policy do suppliers follow?", text: "All supplier policies are in the blue folder." },
    { question: "How are invoices paid?", text: "The payment of an invoice takes two signatures." },
  ])("$question finds other forms of its words", async ({ question, text }) => {
    const file = [
      "# Shop",
      "The shop opens at nine.",
      "Refunds above 200 euros need the approval of a manager.",
      "Each deployment of the shop is done by the operator on duty.",
      "All supplier policies are in the blue folder.",
      "The payment of an invoice takes two signatures.",
    ];
    const shop = await temporaryFolder({ "shop.md": `${file.join("\n\n")}\n` });
    try {
      const { answer } = await runTeam(shop.root, question);
      expect(statementsIn(answer)).toMatchObject([{ text, path: "shop.md", line: 1 + 2 * file.indexOf(text) }]);
    } finally {
      await shop.remove();
    }
  });

  test("returns the items that a sentence announces", async () => {
    const { answer } = await runTeam(folder.root, "How do I pay the fees?");
    expect(answer).toContain("Ask the treasurer for a form. (rules/fees.md:8)");
    expect(answer).toContain("Send it to the office. (rules/fees.md:9)");
  });

  test("reports plainly that nothing was found, and quotes nothing", async () => {
    const { answer } = await runTeam(folder.root, "What is the capital of Portugal?");
    expect(answer).toContain("Nothing was found on “What is the capital of Portugal?”");
    expect(statementsIn(answer)).toEqual([]);
  });

  test("searches first, then asks all readers in one step, one for each file", async () => {
    const { steps } = await runTeam(folder.root, "What does a plot cost, and who is the treasurer?");
    expect(steps.map((calls) => [...new Set(calls.map((call) => call.name))])).toEqual([
      ["list_files", "search_files"],
      ["reader"],
    ]);
    const files = steps[1]?.map((call) => (call.arguments as { file: string }).file) ?? [];
    expect(new Set(files).size).toBe(files.length);
    expect(files).toContain("rules/fees.md");
    expect(files).toContain("notes.txt");
  });

  test("names the files that a reader could not finish, and answers from the others", async () => {
    const { answer } = await runTeam(folder.root, "What does a plot cost, and who is the treasurer?", ({ file }) =>
      file === "notes.txt" ? Promise.reject(new Error("budget exhausted: 2000 tokens")) : undefined,
    );
    expect(answer).toContain("(rules/fees.md:3)");
    expect(answer).toContain("Not answered by notes.txt: budget exhausted: 2000 tokens");
  });

  test("names the answering agents once, at the end", async () => {
    const { answer } = await runTeam(folder.root, "How many hens are allowed?", ({ file }) =>
      Promise.resolve(`${file}:8: Hens are allowed, up to six for each plot.\n\n${defaultClosingLine}`),
    );
    expect(answer.split(defaultClosingLine).length - 1).toBe(1);
    expect(answer.endsWith(defaultClosingLine)).toBe(true);
  });

  test("the same question gets the same answer", async () => {
    const runs = await Promise.all([1, 2, 3].map(() => runTeam(folder.root, "When may members water?")));
    expect(new Set(runs.map((run) => run.answer)).size).toBe(1);
    expect(runs[0]?.answer).toContain("(water.md:11)");
  });

  test("a reader answers with sourced lines only", async () => {
    const tools = Object.values(loopTools(folder.root));
    const prompt = readerPrompt({ file: "water.md", question: "When is the pump switched off?" });
    const { answer } = await runAgent(documentModel(), readerInstructions, prompt, tools);
    expect(answer.split("\n")[0]).toBe("water.md:11: On Sundays the pump is switched off.");
    for (const line of answer.split("\n")) expect(line).toMatch(/^water\.md:\d+: \S/);
  });

  test("one agent with search and read answers a person on its own", async () => {
    const { search, read } = loopTools(folder.root);
    const { answer } = await runAgent(documentModel(), "You help gardeners.", "When is the pump switched off?", [
      search,
      read,
    ]);
    expect(answer).toContain("- On Sundays the pump is switched off. (water.md:11)");
    expect(answer).toContain(defaultClosingLine);
  });

  test("asks no more readers than the instructions allow", async () => {
    const { list, search } = loopTools(folder.root);
    const asked: string[] = [];
    const reader = {
      model: {
        name: "reader",
        description: "Delegates a question on one file to a reader.",
        parameters: {
          type: "object",
          properties: { file: { type: "string" }, question: { type: "string" } },
          required: ["file", "question"],
        },
      },
      run: async (text: string) => {
        asked.push((JSON.parse(text) as { file: string }).file);
        return "Nothing.";
      },
    };
    await runAgent(documentModel(), leadInstructions(1), "What does a plot cost, and who is the treasurer?", [
      list,
      search,
      reader,
    ]);
    expect(asked).toHaveLength(1);
  });

  test("without its tools on the last step, it answers from the collected results", async () => {
    const call = { callId: "t:1:0", providerId: "offline_0_0", name: "search_files", arguments: '{"query":"lease"}' };
    const common = { createdAt: 0, origin: "tool" };
    const content = "a.md:3: A lease is a right for a while.";
    const messages: Message[] = [
      { ...common, id: "q", role: "user", origin: "user", content: "What is a lease?" },
      { ...common, id: "a", role: "assistant", content: "", toolCalls: [call] },
      { ...common, id: "r", role: "tool", content, callId: call.callId, providerId: call.providerId },
    ];
    const { content: text } = await documentModel().generate({ messages }, { signal: new AbortController().signal });
    expect(text).toContain("- A lease is a right for a while. (a.md:3)");
  });
});
