import {
  oneLine,
  answerFromConversation,
  type Assignment,
  assignmentOf,
  type LanguageModel,
  type OfflineModelOptions,
  pathsIn,
  type Plan,
  type PlannedCall,
  plannedModel,
  type ToolResult,
} from "../model/index.ts";
import type { ModelRequest } from "../state/index.ts";
import { answerFromReading, answerFromReports, nothingFound, reportText } from "./answer.ts";
import { type Keywords, keywordsOf, queryOf } from "./keywords.ts";
import { candidatesIn, rangesAround, filesIn, findingsIn } from "./reading.ts";
import { selectFiles } from "./selection.ts";

/** The tools of the team by the names that its model knows. */
export const toolNames = { list: "list_files", search: "search_files", read: "read_file", reader: "reader" } as const;

const defaultMostFiles = 6;
const hitsWanted = 40;

/**
 * The rule-based engine of `troupe ask`, behind the port of a language model. It plays the two parts of the team over a
 * folder: the lead lists and searches the files and sends a reader to each that matters; a reader searches one file,
 * reads around the hits and quotes the sentences that speak to the question. Same limits as `offlineModel`.
 */
export function documentModel(options: OfflineModelOptions = {}): LanguageModel {
  return plannedModel(planNext, options);
}

interface Situation {
  readonly assignment: Assignment;
  readonly keywords: Keywords;
  /** Names of the tools that may be called now. */
  readonly tools: ReadonlySet<string>;
  readonly results: Readonly<Record<keyof typeof toolNames, readonly ToolResult[]>>;
}

/** Decides the next step from the request alone: the same request always gives the same plan. */
function planNext(request: ModelRequest): Plan {
  const situation = situationOf(request);
  const { tools, keywords, assignment, results } = situation;
  if (results.reader.length > 0) {
    return answer(situation, answerFromReports(keywords, results.reader, textsOf(results.search)));
  }
  if (tools.size === 0 && results.read.length + results.search.length > 0) return answerReading(situation);
  if (keywords.words.length > 0 && tools.has(toolNames.reader)) return planTeam(situation);
  if (keywords.words.length > 0 && tools.size > 0) return planReading(situation);
  const offered = (request.tools ?? []).filter((tool) => tools.has(tool.name));
  return answer(situation, answerFromConversation(assignment, offered));
}

function situationOf(request: ModelRequest): Situation {
  const assignment = assignmentOf(request);
  const of = (name: string): ToolResult[] => assignment.results.filter((result) => result.name === name);
  return {
    assignment,
    keywords: keywordsOf(assignment.question, assignment.previousQuestion),
    tools: new Set(request.toolChoice === "none" ? [] : request.tools?.map((tool) => tool.name)),
    results: {
      list: of(toolNames.list),
      search: of(toolNames.search),
      read: of(toolNames.read),
      reader: of(toolNames.reader),
    },
  };
}

function answer(situation: Situation, text: string): Plan {
  return { kind: "answer", text, isForPerson: !situation.assignment.isDelegated };
}

/** Results that are no errors, as text. */
function textsOf(results: readonly ToolResult[]): string[] {
  return results.flatMap((result) => (result.isError ? [] : [result.text]));
}

/** The lead: list and search, then one reader for each file that matters, all in one step. */
function planTeam(situation: Situation): Plan {
  const { assignment, keywords, results } = situation;
  if (results.search.length + results.list.length === 0) {
    return { kind: "calls", calls: [{ name: toolNames.list, arguments: {} }, searchCall(situation)] };
  }
  const files = textsOf(results.list).flatMap(filesIn);
  const most = boundInInstructions(assignment.instructions);
  const chosen = selectFiles(keywords, { searches: textsOf(results.search), listed: files }, most);
  const known = pathsIn(assignment.question).filter((path) => files.some((file) => file.path === path));
  const wanted = [...new Set([...known, ...chosen])].slice(0, most);
  if (wanted.length > 0) {
    const { question } = assignment;
    return { kind: "calls", calls: wanted.map((file) => ({ name: toolNames.reader, arguments: { file, question } })) };
  }
  const failed = [...results.search, ...results.list].filter((result) => result.isError);
  const why = failed.map((result) => `\n\n${result.name} failed: ${result.text}`).join("");
  return answer(situation, `${nothingFound(keywords, [])}${why}`);
}

/** The bound that the lead's instructions set, as in "at most 4 files". */
function boundInInstructions(instructions: string): number {
  const found = /\bat most (\d{1,3}) files?\b/i.exec(instructions)?.[1];
  return found === undefined ? defaultMostFiles : Number(found);
}

function searchCall({ keywords, assignment: { file } }: Situation): PlannedCall {
  return {
    name: toolNames.search,
    arguments: { query: queryOf(keywords), ...(file === undefined ? {} : { file }), maxResults: hitsWanted },
  };
}

/** A reader: search, read around the hits, quote. */
function planReading(situation: Situation): Plan {
  const { tools, assignment, keywords, results } = situation;
  if (results.read.length > 0) return answerReading(situation);
  if (results.search.length === 0 && tools.has(toolNames.search)) {
    return { kind: "calls", calls: [searchCall(situation)] };
  }
  const found = textsOf(results.search).flatMap(findingsIn);
  const hits = assignment.file === undefined ? found : found.filter((hit) => hit.path === assignment.file);
  if (hits.length === 0 || !tools.has(toolNames.read)) return answerReading(situation);
  const calls = rangesAround(keywords, hits).map(({ path, first, last }) => ({
    name: toolNames.read,
    arguments: { path, startLine: first, endLine: last },
  }));
  return { kind: "calls", calls };
}

function answerReading(situation: Situation): Plan {
  const { assignment, keywords, results } = situation;
  const done = [...results.read, ...results.search];
  const [failed] = done;
  if (failed !== undefined && done.every((result) => result.isError)) {
    return answer(situation, `The tool ${failed.name} failed: ${oneLine(failed.text)}`);
  }
  const reads = results.read.filter((result) => !result.isError);
  const searches = results.search.filter((result) => !result.isError);
  const gathered = { candidates: candidatesIn(reads, searches, assignment.file), searches: textsOf(searches) };
  return answer(
    situation,
    assignment.isDelegated ? reportText(keywords, gathered, assignment.file) : answerFromReading(keywords, gathered),
  );
}
