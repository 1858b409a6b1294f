import { type Message, type ModelTool, textOf } from "../state/index.ts";
import { oneLine, wordList } from "./offline-answer.ts";
import { type Keywords, keywordsOf } from "./offline-keywords.ts";
import { isRelevant, type Match, matchPassage } from "./offline-matching.ts";
import { type Asked, askedIn, contradicts, givesAskedFor, statedShare } from "./offline-question.ts";
import { scoreMatch, statisticsOf } from "./offline-ranking.ts";
import type { Assignment } from "./offline-request.ts";
import { sentencesOfText } from "./offline-sentences.ts";
import { isStopWord, wordsOf } from "./offline-words.ts";

interface Statement {
  readonly text: string;
  readonly by: "user" | "assistant" | "system";
}

const mostSentencesOfSummary = 3;

/** An answer without tools: what the conversation itself says, or plainly that it says nothing. */
export function answerFromConversation(assignment: Assignment, tools: readonly ModelTool[]): string {
  const { question } = assignment;
  if (question === "") return "There is no question in this conversation yet.";
  if (/\bsummar(?:y|i[sz])/i.test(question)) return summaryOf(assignment);
  const said = quotedQuestion(assignment);
  if (said !== undefined) return said;
  const asked = askedIn(question);
  if (asked.questions.length === 0) return `Understood: ${swapPersons(oneLine(question))}`;
  const statements = statementsOf(assignment, asked);
  const answers = asked.questions.map((one) => {
    // Only the words of the question are looked for: what the same message states beside it is where they may be found.
    const keywords = keywordsOf(one, assignment.previousQuestion);
    const found = bestStatement(statements, keywords);
    return found === undefined ? nothingSaid(keywords, tools) : statedAs(found);
  });
  return [...new Set(answers)].join("\n");
}

function statedAs({ by, text }: Statement): string {
  if (by === "user") return swapPersons(text);
  return by === "system" ? `My instructions say: ${text}` : `As said before: ${text}`;
}

function nothingSaid(keywords: Keywords, tools: readonly ModelTool[]): string {
  const can = tools.length === 0 ? "" : ` The tools I could call are: ${tools.map((tool) => tool.name).join(", ")}.`;
  return `I cannot answer “${oneLine(keywords.question)}”: nothing in this conversation speaks of ${wordList(keywords)}, and I know only what I am given.${can}`;
}

/** "What did I ask first?" */
function quotedQuestion(assignment: Assignment): string | undefined {
  if (
    !/\bwhat (?:did|have|was) (?:i|my)\b.{0,30}\b(?:ask|asked|say|said|question|message)\b/i.test(assignment.question)
  )
    return undefined;
  const said = assignment.earlier.filter((message) => message.role === "user");
  const message = /\bfirst\b/i.test(assignment.question) ? said[0] : said.at(-1);
  return message === undefined ? "You said nothing before this." : `You said: “${oneLine(textOf(message.content))}”`;
}

const weightOf = { user: 1.5, system: 1, assistant: 0.7 };
const weightOfGiven = { true: 1.5, false: 1, undefined: 1 };
const contradictionWeight = 0.4;

/** The statement that fits best; of equal ones the latest, since people correct themselves. */
function bestStatement(statements: readonly Statement[], keywords: Keywords): Statement | undefined {
  const { question } = keywords;
  const name = /\b(?:my name|who am i)\b/i.test(question)
    ? statements.findLast((statement) => statement.by === "user" && introducesSelf(statement.text))
    : undefined;
  if (name !== undefined) return name;
  const shareOf = statedShare(question);
  const matched = statements.flatMap((statement, order) => {
    const match = matchPassage(keywords, statement.text) ?? wordless(keywords);
    const share = shareOf(statement.text);
    return match !== undefined && (isRelevant(keywords, match) || share === 1)
      ? [{ statement, order, match, share }]
      : [];
  });
  const statistics = statisticsOf(
    keywords,
    matched.map(({ match }) => match),
    statements.length,
  );
  const ranked = matched.map(({ statement, order, match, share }) => ({
    statement,
    score:
      (keywords.words.length === 0
        ? 1
        : scoreMatch(keywords, { ...match, length: statistics.averageLength }, statistics)) *
      weightOf[statement.by] *
      (1 + share) *
      weightOfGiven[`${givesAskedFor(question, statement.text)}`] *
      (contradicts(question, statement.text) ? contradictionWeight : 1) *
      (1 + order / 1_000),
  }));
  return ranked.sort((left, right) => right.score - left.score)[0]?.statement;
}

/** "Who has it?" has no word to look for: only the order of its words tells of an answer. */
function wordless(keywords: Keywords): Match | undefined {
  return keywords.words.length === 0 ? { own: [], around: [], length: 0, pairs: 0, phrases: 0 } : undefined;
}

function introducesSelf(text: string): boolean {
  return /\bmy name(?:'s| is)\b|\bcall me\b|\bI(?:'m| am) \p{Lu}/u.test(text);
}

/** Sentences that state something, oldest first: of earlier messages, and of the message that asks. */
function statementsOf({ earlier }: Assignment, { statements }: Asked): Statement[] {
  const before = earlier.flatMap((message) =>
    message.role === "tool" ? [] : sentencesIn(message).map((text) => ({ text, by: message.role })),
  );
  return [
    ...before.filter((statement) => !statement.text.endsWith("?")),
    ...statements.map((text): Statement => ({ text, by: "user" })),
  ];
}

function sentencesIn(message: Message): string[] {
  return sentencesOfText(textOf(message.content));
}

/** The sentences that share most words with the others, in their order. */
function summaryOf(assignment: Assignment): string {
  const own = assignment.question.replace(/^[^\n:]{0,200}(?::|\n)\s*/, "");
  const before = assignment.earlier.filter((message) => message.role === "user" || message.role === "assistant");
  const sentences =
    own !== assignment.question && own.trim() !== "" ? sentencesOfText(own) : before.flatMap(sentencesIn);
  if (sentences.length === 0) return "There is nothing to summarise in this conversation.";
  const stems = sentences.map(
    (text) => new Set(wordsOf(text).flatMap((word) => (isStopWord(word.text.toLowerCase()) ? [] : [word.stem]))),
  );
  const counts = new Map<string, number>();
  for (const words of stems) for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  const weights = stems.map(
    (words) =>
      [...words].reduce((sum, word) => sum + (counts.get(word) ?? 0) - 1, 0) / Math.sqrt(Math.max(1, words.size)),
  );
  const chosen = weights
    .map((weight, index) => ({ weight, index }))
    .sort((left, right) => right.weight - left.weight || left.index - right.index)
    .slice(0, mostSentencesOfSummary)
    .sort((left, right) => left.index - right.index);
  return chosen.map(({ index }) => sentences[index]).join(" ");
}

const swaps: ReadonlyMap<string, string> = new Map([
  ["i", "you"],
  ["i'm", "you are"],
  ["i've", "you have"],
  ["i'll", "you will"],
  ["i'd", "you would"],
  ["me", "you"],
  ["my", "your"],
  ["mine", "yours"],
  ["myself", "yourself"],
  ["am", "are"],
]);

/** Turns what a user said about themselves into what can be said to them. */
export function swapPersons(text: string): string {
  const swapped = text
    .replaceAll("’", "'")
    .replaceAll(/\bI was\b/g, "you were")
    .replaceAll(/[A-Za-z']+/g, (word) => swaps.get(word.toLowerCase()) ?? word);
  return swapped.replace(/^\p{Ll}/u, (letter) => letter.toUpperCase());
}
