import { type Message, type ModelTool, textOf } from "../state/index.ts";
import { type Asked, askedIn, contradicts, givesAskedFor, sentencesOf, statedShare } from "./offline-question.ts";
import { type Assignment, oneLine } from "./offline-request.ts";
import { isStopWord, wordsOf } from "./offline-words.ts";

interface Statement {
  readonly text: string;
  readonly by: "user" | "assistant" | "system";
}

const mostSentencesOfSummary = 3;

/** An answer without tools: a quotation from the conversation, or the statement that it has none. */
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
    const subject = subjectOf(one, assignment.previousQuestion);
    const found = bestStatement(statements, one, subject);
    return found === undefined ? nothingSaid(one, subject, tools) : statedAs(found);
  });
  return [...new Set(answers)].join("\n");
}

/** The words of a question that carry its subject, by their stems. */
type Subject = ReadonlyMap<string, string>;

const mostSubjectWords = 24;

/** A short question that refers to the one before, such as "And for subagents?", gets the words of that one too. */
function subjectOf(question: string, previous: string | undefined): Subject {
  const own = contentWords(question);
  const leans =
    /^(?:and|but|or|also|what about|how about|then|so)\b|\b(?:it|its|they|them|that|those|this|these)\b/i.test(
      question.trim(),
    );
  const all = previous !== undefined && own.length < 2 && leans ? [...own, ...contentWords(previous)] : own;
  return new Map(all.slice(0, mostSubjectWords).map(({ stem, text }) => [stem, text]));
}

function contentWords(text: string): { stem: string; text: string }[] {
  return wordsOf(text).filter(
    (word) => !isStopWord(word.text.toLowerCase()) && (word.text.length > 1 || /\d/.test(word.text)),
  );
}

function statedAs({ by, text }: Statement): string {
  if (by === "user") return swapPersons(text);
  return by === "system" ? `My instructions say: ${text}` : `As said before: ${text}`;
}

function nothingSaid(question: string, subject: Subject, tools: readonly ModelTool[]): string {
  const words = subject.size === 0 ? "this" : [...subject.values()].slice(0, 12).join(", ");
  const can = tools.length === 0 ? "" : ` The tools I could call are: ${tools.map((tool) => tool.name).join(", ")}.`;
  return `I cannot answer “${oneLine(question)}”: nothing in this conversation speaks of ${words}, and I know only what I am given.${can}`;
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
function bestStatement(statements: readonly Statement[], question: string, subject: Subject): Statement | undefined {
  const name = /\b(?:my name|who am i)\b/i.test(question)
    ? statements.findLast((statement) => statement.by === "user" && introducesSelf(statement.text))
    : undefined;
  if (name !== undefined) return name;
  const shareOf = statedShare(question);
  const stems = [...subject.keys()];
  const needed = stems.length > 7 ? 3 : Math.min(2, stems.length);
  const matched = statements.flatMap((statement, order) => {
    const words = stemsIn(statement.text);
    const found = stems.filter((stem) => words.has(stem));
    const share = shareOf(statement.text);
    const fits =
      (found.length >= needed && found.length > 0) || (share === 1 && (found.length > 0 || subject.size === 0));
    return fits ? [{ statement, order, found, share }] : [];
  });
  const rarity = new Map(
    stems.map((stem) => {
      const containing = matched.filter(({ found }) => found.includes(stem)).length;
      return [stem, Math.log(1 + (statements.length - containing + 0.5) / (containing + 0.5))];
    }),
  );
  const ranked = matched.map(({ statement, order, found, share }) => {
    const score = found.reduce((sum, stem) => sum + (rarity.get(stem) ?? 0), 0);
    return {
      statement,
      score:
        (subject.size === 0 ? 1 : score * (0.4 + found.length / stems.length)) *
        weightOf[statement.by] *
        (1 + share) *
        weightOfGiven[`${givesAskedFor(question, statement.text)}`] *
        (contradicts(question, statement.text) ? contradictionWeight : 1) *
        (1 + order / 1_000),
    };
  });
  return ranked.sort((left, right) => right.score - left.score)[0]?.statement;
}

function stemsIn(text: string): ReadonlySet<string> {
  return new Set(wordsOf(text).flatMap((word) => [word.stem, ...word.parts]));
}

function introducesSelf(text: string): boolean {
  return /\bmy name(?:'s| is)\b|\bcall me\b|\bI(?:'m| am) \p{Lu}/u.test(text);
}

/** Sentences that state something, oldest first: of earlier messages, then of the current one. */
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
  return sentencesOf(textOf(message.content));
}

/** The sentences that share the most words with the others, in their original order. */
function summaryOf(assignment: Assignment): string {
  const own = assignment.question.replace(/^[^\n:]{0,200}(?::|\n)\s*/, "");
  const before = assignment.earlier.filter((message) => message.role === "user" || message.role === "assistant");
  const sentences = own !== assignment.question && own.trim() !== "" ? sentencesOf(own) : before.flatMap(sentencesIn);
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

/** Turns a user's statement about themselves into one that can be said to them. */
function swapPersons(text: string): string {
  const swapped = text
    .replaceAll("’", "'")
    .replaceAll(/\bI was\b/g, "you were")
    .replaceAll(/[A-Za-z']+/g, (word) => swaps.get(word.toLowerCase()) ?? word);
  return swapped.replace(/^\p{Ll}/u, (letter) => letter.toUpperCase());
}
