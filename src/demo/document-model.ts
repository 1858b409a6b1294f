import {
  answerFromConversation,
  type Assignment,
  assignmentOf,
  type LanguageModel,
  type OfflineModelOptions,
  oneLine,
  pathsIn,
  type Plan,
  type PlannedCall,
  plannedModel,
  type ToolResult,
} from "../model/index.ts";
import type { ModelRequest } from "../state/index.ts";
import { phrasesIn, stemsIn, termsOf } from "./file-search.ts";
import { passagesOf } from "./passages.ts";

/** The tools of the team by the names that its model knows. */
export const toolNames = { list: "list_files", search: "search_files", read: "read_file", reader: "reader" } as const;

const defaultMostFiles = 6;
const hitsWanted = 40;
const mostRead = 3;
const mostInReport = 6;
const mostInAnswer = 9;
const mostPerFile = 4;
const mostFollowers = 4;
/** Furthest distance, in lines, between a statement that ends in a colon and what belongs to it. */
const followerDistance = 15;

/** A statement with its source, as search results and reports have them: `path:line: text [under: A > B]`. */
interface Finding {
  readonly path: string;
  readonly line: number;
  readonly text: string;
  readonly headings: string;
}

interface Situation extends Assignment {
  /** The stems that a statement has to have, for each question that was asked. */
  readonly questions: readonly ReadonlyMap<string, string>[];
  /** Names of the tools that may be called now. */
  readonly tools: ReadonlySet<string>;
  of(tool: keyof typeof toolNames): readonly ToolResult[];
}

/**
 * The rule-based engine of `troupe ask`, behind the port of a language model. It plays the two parts of the team over a
 * folder: the lead lists and searches the files and sends a reader to each that matters; a reader searches one file,
 * reads around the hits and quotes the sentences that speak to the question. Same limits as `offlineModel`.
 */
export function documentModel(options: OfflineModelOptions = {}): LanguageModel {
  return plannedModel(planNext, options);
}

/** Decides the next step from the request alone: the same request always gives the same plan. */
function planNext(request: ModelRequest): Plan {
  const situation = situationOf(request);
  const { tools, questions } = situation;
  if (situation.of("reader").length > 0) return answer(situation, answerFromReports(situation));
  if (tools.size === 0 && situation.of("search").length > 0) return answer(situation, answerFromReading(situation));
  if (questions.length > 0 && tools.has(toolNames.reader)) return planTeam(situation);
  if (questions.length > 0 && tools.size > 0) return planReading(situation);
  const offered = (request.tools ?? []).filter((tool) => tools.has(tool.name));
  return answer(situation, answerFromConversation(situation, offered));
}

function situationOf(request: ModelRequest): Situation {
  const assignment = assignmentOf(request);
  return {
    ...assignment,
    questions: questionsIn(assignment),
    tools: new Set(request.toolChoice === "none" ? [] : request.tools?.map((tool) => tool.name)),
    of: (tool) => assignment.results.filter(({ name }) => name === toolNames[tool]),
  };
}

/** The terms of each question in it; a short follow-up also gets those of the question before. */
function questionsIn({ question, previousQuestion = "" }: Assignment): ReadonlyMap<string, string>[] {
  const parts = question.split(/\?\s+|[,;]?\s+and\s+(?=(?:who|what|when|where|why|which|how|does|is|are|can)\b)/i);
  const terms = parts.map(termsOf).filter((part) => part.size > 0);
  const leans = /^(?:and|but|or|also|what about|how about|then|so)\b|\b(?:it|its|they|them|that|those|this|these)\b/i;
  const [only] = terms;
  if (terms.length !== 1 || only === undefined || only.size > 1 || !leans.test(question.trim())) return terms;
  return [new Map([...only, ...termsOf(previousQuestion)])];
}

function answer({ isDelegated }: Situation, text: string): Plan {
  return { kind: "answer", text, isForPerson: !isDelegated };
}

/** The lead: list and search, then one reader for each file that matters, all in one step. */
function planTeam(situation: Situation): Plan {
  const { instructions, question } = situation;
  if (situation.of("search").length + situation.of("list").length === 0) {
    return { kind: "calls", calls: [{ name: toolNames.list, arguments: {} }, searchCall(situation)] };
  }
  const most = Number(/\bat most (\d{1,3}) files?\b/i.exec(instructions)?.[1] ?? defaultMostFiles);
  const listed = textsOf(situation.of("list")).join("\n");
  const named = pathsIn(question).filter((path) => listed.includes(`${path}  `));
  const hits = hitsFor(situation);
  // Where no statement speaks to the whole question, files that have its words are worth a look.
  const found = filesByHits(hits.length > 0 ? hits : findingsIn(textsOf(situation.of("search")).join("\n")));
  const files = [...new Set([...named, ...found])].slice(0, most);
  if (files.length > 0) {
    return { kind: "calls", calls: files.map((file) => ({ name: toolNames.reader, arguments: { file, question } })) };
  }
  return answer(situation, [nothingFound(situation), ...failuresOf(situation)].join("\n\n"));
}

/** The files with the best hits first: a hit counts less, the lower it ranks. */
function filesByHits(hits: readonly Finding[]): string[] {
  const scores = new Map<string, number>();
  for (const [rank, { path }] of hits.entries()) scores.set(path, (scores.get(path) ?? 0) + 1 / (rank + 2));
  return [...scores].sort(([, one], [, other]) => other - one).map(([path]) => path);
}

function searchCall({ question, questions, file }: Situation): PlannedCall {
  const phrases = phrasesIn(question).filter((phrase) => phrase.includes(" "));
  const inPhrases = stemsIn(phrases.join(" "));
  const words = questions.flatMap((terms) => [...terms].flatMap(([stem, word]) => (inPhrases.has(stem) ? [] : [word])));
  const query = [...phrases.map((phrase) => `"${phrase}"`), ...new Set(words)].join(" ").slice(0, 1_000);
  return {
    name: toolNames.search,
    arguments: { query, ...(file === undefined ? {} : { file }), maxResults: hitsWanted },
  };
}

/** A reader: search, read around the best hits, quote. */
function planReading(situation: Situation): Plan {
  const { tools } = situation;
  if (situation.of("read").length > 0) return answer(situation, answerFromReading(situation));
  if (situation.of("search").length === 0 && tools.has(toolNames.search)) {
    return { kind: "calls", calls: [searchCall(situation)] };
  }
  const read: Finding[] = [];
  for (const hit of hitsFor(situation)) {
    const isNear = read.some(({ path, line }) => path === hit.path && Math.abs(line - hit.line) < followerDistance);
    if (!isNear && read.length < mostRead) read.push(hit);
  }
  if (read.length === 0 || !tools.has(toolNames.read)) return answer(situation, answerFromReading(situation));
  const calls = read.map(({ path, line }) => ({
    name: toolNames.read,
    arguments: { path, startLine: Math.max(1, line - 2), endLine: line + followerDistance },
  }));
  return { kind: "calls", calls };
}

/** The hits of all searches that speak to one of the questions. */
function hitsFor(situation: Situation): Finding[] {
  const { questions, file } = situation;
  return findingsIn(textsOf(situation.of("search")).join("\n")).filter(
    ({ path, text, headings }) =>
      (file === undefined || path === file) && !/^#{1,6}\s/.test(text) && speaksTo(questions, `${text}\n${headings}`),
  );
}

/** Whether the text has a word of a short question, and half of the words of a long one. */
function speaksTo(questions: readonly ReadonlyMap<string, string>[], text: string): boolean {
  const stems = stemsIn(text);
  return questions.some((terms) => {
    const found = [...terms.keys()].filter((stem) => stems.has(stem)).length;
    return found >= Math.max(Math.min(2, terms.size), Math.ceil(terms.size / 2));
  });
}

/** What an agent found in its own reading: sourced lines for another agent, an answer for a person. */
function answerFromReading(situation: Situation): string {
  const done = [...situation.of("read"), ...situation.of("search")];
  if (done.length > 0 && done.every(({ isError }) => isError)) return failuresOf(situation)[0] ?? "";
  const best = hitsFor(situation).slice(0, situation.isDelegated ? mostInReport : mostInAnswer);
  const groups = best.map((hit) => [hit, ...followersOf(hit, situation.of("read"))]);
  if (!situation.isDelegated) return groups.length === 0 ? nothingFound(situation) : sourcedText(situation, groups);
  if (groups.length === 0)
    return `Nothing about ${wordsOf(situation)} was found${situation.file === undefined ? "" : ` in ${situation.file}`}.`;
  return groups
    .flat()
    .map(({ path, line, text }) => `${path}:${line}: ${text}`)
    .join("\n");
}

/** The items, rows or code that a statement announces with a colon, from the lines that were read. */
function followersOf(hit: Finding, reads: readonly ToolResult[]): Finding[] {
  if (!/:[*_`]*$/.test(hit.text)) return [];
  for (const { arguments: args, text, isError } of reads) {
    if (isError || args["path"] !== hit.path) continue;
    const lines = text
      .split("\n")
      .slice(1)
      .map((line) => line.replace(/^\d+: /, ""));
    const passages = passagesOf(hit.path, lines, Number(args["startLine"] ?? 1));
    const at = passages.findIndex(({ line, text: own }) => line === hit.line && own === hit.text);
    const rest = at < 0 ? [] : passages.slice(at + 1, at + 1 + mostFollowers);
    const end = rest.findIndex(({ kind }) => kind === "prose" || kind === "heading" || kind !== rest[0]?.kind);
    return rest.slice(0, end < 0 ? rest.length : end).map((passage) => ({ path: hit.path, ...passage, headings: "" }));
  }
  return [];
}

/** The answer for a person, from the reports of the readers: in the order of their files, each statement once. */
function answerFromReports(situation: Situation): string {
  const reports = situation.of("reader");
  const failed = reports.filter(({ isError }) => isError);
  const notes = failed.map((report) => `Not answered by ${fileOf(report)}: ${oneLine(report.text).slice(0, 300)}`);
  const groups: Finding[][] = [];
  for (const report of reports.filter(({ isError }) => !isError)) groups.push(...groupsIn(report.text, groups));
  const text = groups.length === 0 ? plainReports(situation) : sourcedText(situation, groups.slice(0, mostInAnswer));
  return [text, ...notes].join("\n\n");
}

/** Statements of a report, each with those that it announces, without what was told already. */
function groupsIn(report: string, told: readonly (readonly Finding[])[]): Finding[][] {
  const known = new Set(told.flat().map(({ text }) => text));
  const groups: Finding[][] = [];
  for (const finding of findingsIn(report)) {
    if (known.has(finding.text)) continue;
    known.add(finding.text);
    const [leader] = groups.at(-1) ?? [];
    const distance = leader?.path === finding.path && /:[*_`]*$/.test(leader.text) ? finding.line - leader.line : 0;
    if (distance > 0 && distance <= followerDistance) groups.at(-1)?.push(finding);
    else groups.push([finding]);
  }
  return groups.slice(0, mostPerFile);
}

/** Reports without sources are passed on as they are, unless they say that there is nothing. */
function plainReports(situation: Situation): string {
  const saying = situation
    .of("reader")
    .filter(({ isError, text }) => !isError && text.trim() !== "" && !text.startsWith("Nothing about "));
  return saying.length === 0
    ? nothingFound(situation)
    : saying.map((report) => `${fileOf(report)}:\n${report.text.trim()}`).join("\n\n");
}

function sourcedText({ question }: Situation, groups: readonly (readonly Finding[])[]): string {
  const paths = [...new Set(groups.map(([first]) => first?.path ?? ""))];
  const sections = paths.map((path) => {
    const own = groups
      .filter(([first]) => first?.path === path)
      .flatMap((group) =>
        group.map(({ line, text }, index) => `${index === 0 ? "- " : "    "}${text} (${path}:${line})`),
      );
    return [...(paths.length === 1 ? [] : [path]), ...own].join("\n");
  });
  const where = paths.length === 1 ? `${paths[0]} says` : `${paths.length} files say`;
  return [`On “${oneLine(question)}”, ${where}:`, ...sections].join("\n\n");
}

function nothingFound(situation: Situation): string {
  return `Nothing was found on “${oneLine(situation.question)}”: no passage speaks of ${wordsOf(situation)}.`;
}

function wordsOf({ questions }: Situation): string {
  return [...new Set(questions.flatMap((terms) => [...terms.values()]))].slice(0, 12).join(", ") || "this";
}

function failuresOf({ results }: Situation): string[] {
  return results.flatMap(({ name, text, isError }) => (isError ? [`The tool ${name} failed: ${oneLine(text)}`] : []));
}

function fileOf({ name, arguments: args }: ToolResult): string {
  return typeof args["file"] === "string" ? args["file"] : name;
}

/** Results that are no errors, as text. */
function textsOf(results: readonly ToolResult[]): string[] {
  return results.flatMap(({ isError, text }) => (isError ? [] : [text]));
}

function findingsIn(text: string): Finding[] {
  return text.split("\n").flatMap((line): Finding[] => {
    const [, path, number, statement, headings = ""] =
      /^(?:- )?(\S[^:\n]{0,300}):(\d{1,9}): (.*?)(?: \[under: (.*)\])?$/.exec(line) ?? [];
    if (path === undefined || statement === undefined) return [];
    return [{ path, line: Number(number), text: statement, headings }];
  });
}
