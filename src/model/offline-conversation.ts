import { type Assignment, oneLine, sentencesIn } from "./offline-request.ts";
import { missingTerms, pairsIn, rank, stemsIn } from "./offline-search.ts";

const weights = { user: 1.5, system: 1, assistant: 0.7 };
const openings = { user: "", system: "My instructions say: ", assistant: "As said before: " };
const numbers = /\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|hundred|thousand)\b/i;
/** Words that occur in a statement which answers a question of this kind. */
const hints = [
  [/\bwhere\b/i, "in into inside on at under over above below behind beside between near by from to next"],
  [/\bwhen\b|\bwhat time\b/i, "any_number at before after since until today tomorrow noon midnight"],
  [/\bhow (?:many|much|old|long|far|tall|big|often)\b/i, "any_number no none both dozen"],
  [/\bwhy\b/i, "because since so therefore reason due"],
] as const;

/** Answers without tools: quotes for each question the statement of the conversation that fits best, or reports that none fits. */
export async function answerFromConversation({ prompt, questions, earlier, tools }: Assignment): Promise<string> {
  if (prompt === "") return "There is no question in this conversation yet.";
  if (questions.length === 0) return `You said: “${oneLine(prompt)}”`;
  const statements = [...earlier, { role: "user" as const, text: prompt }]
    .flatMap(({ role, text }) => sentencesIn(text).map((sentence) => ({ role, text: sentence, headings: [] })))
    .filter(({ text }) => !text.endsWith("?") && !questions.some((question) => question.text === text));
  const answers = questions.map(async ({ text: question, terms }) => {
    const pairs = new Set(pairsIn(question));
    const boostOf = new Map<string, number>();
    for (const [asks, gives] of hints) if (asks.test(question)) for (const hint of stemsIn(gives)) boostOf.set(hint, 1);
    for (const pair of pairs) boostOf.set(pair, 0.5);
    for (const term of terms.keys()) boostOf.set(term, 1);
    // Matching word pairs make up for missing words, such as "colour" in "What colour is the box?".
    const fitting = statements.filter(
      ({ text }) => missingTerms(terms, text) <= pairsIn(text).filter((pair) => pairs.has(pair)).length,
    );
    // Later statements rank higher, since people correct themselves.
    const weightOf = ({ role }: (typeof statements)[number], at: number): number => weights[role] * (1 + at / 1_000);
    const [best] = await rank(fitting, boostOf, weightOf, tokensIn);
    if (best !== undefined) return openings[best.role] + best.text;
    const words = [...terms.values()].slice(0, 12).join(", ") || "this";
    const can = tools.length === 0 ? "" : ` The tools I could call are: ${tools.map(({ name }) => name).join(", ")}.`;
    return `I cannot answer “${question}”: nothing in this conversation speaks of ${words}, and I know only what I am given.${can}`;
  });
  return [...new Set(await Promise.all(answers))].join("\n");
}

function tokensIn(text: string): string[] {
  return [...stemsIn(text), ...pairsIn(text), ...(numbers.test(text) ? ["any_number"] : [])];
}
