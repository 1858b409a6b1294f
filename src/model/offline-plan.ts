import type { ModelRequest, ModelTool } from "../state/index.ts";
import { answerFromReading, answerFromReports, nothingFound, reportText } from "./offline-answer.ts";
import { answerFromConversation } from "./offline-dialogue.ts";
import { type Keywords, keywordsOf, queryOf } from "./offline-keywords.ts";
import { filesIn, findingsIn } from "./offline-listing.ts";
import { candidatesIn, rangesAround } from "./offline-reading.ts";
import { type Assignment, assignmentOf, boundInInstructions, pathsIn, type ToolResult } from "./offline-request.ts";
import { selectFiles } from "./offline-selection.ts";
import { answerFromTools, chooseTools, missingText, type PlannedCall } from "./offline-tool-choice.ts";
import * as parameters from "./offline-tools.ts";

/** What the engine does next: call tools, or answer. `isFinding` marks an answer that goes to another agent. */
export type Plan =
  | { readonly kind: "calls"; readonly calls: readonly PlannedCall[] }
  | { readonly kind: "answer"; readonly text: string; readonly isForPerson: boolean };

const defaultMostFiles = 6;
const hitsWanted = 40;

interface Situation {
  readonly assignment: Assignment;
  readonly keywords: Keywords;
  readonly tools: parameters.Toolbox;
  readonly delegated: readonly ToolResult[];
  readonly searched: readonly ToolResult[];
  readonly listed: readonly ToolResult[];
  readonly read: readonly ToolResult[];
  readonly called: readonly ToolResult[];
}

/** Decides the next step from the request alone: the same request always gives the same plan. */
export function planNext(request: ModelRequest): Plan {
  const situation = situationOf(request);
  const { tools, keywords, assignment } = situation;
  const mayCall = request.toolChoice !== "none" && (request.tools?.length ?? 0) > 0;
  if (situation.delegated.length > 0)
    return answer(situation, answerFromReports(keywords, situation.delegated, textsOf(situation.searched)));
  if (situation.called.length > 0) return answer(situation, answerFromTools(situation.called));
  if (!mayCall) return answerWithoutTools(situation);
  const choice = chooseTools(tools.others, assignment.question);
  if (choice.calls.length > 0) return { kind: "calls", calls: choice.calls };
  const hasSubject = keywords.words.length > 0;
  if (hasSubject && tools.delegates.length > 0) return planTeam(situation);
  if (hasSubject && (tools.search !== undefined || tools.read !== undefined)) return planReading(situation);
  return answer(
    situation,
    choice.incomplete.length > 0 ? missingText(choice) : answerFromConversation(assignment, request.tools ?? []),
  );
}

function situationOf(request: ModelRequest): Situation {
  const assignment = assignmentOf(request);
  const tools = parameters.toolboxOf(request.tools ?? []);
  const kinds = assignment.results.map((result) => kindOf(result, tools));
  const ofKind = (kind: string): ToolResult[] => assignment.results.filter((_, index) => kinds[index] === kind);
  return {
    assignment,
    keywords: keywordsOf(assignment.question, assignment.previousQuestion),
    tools,
    delegated: ofKind("delegate"),
    searched: ofKind("search"),
    listed: ofKind("list"),
    read: ofKind("read"),
    called: ofKind("other"),
  };
}

/** By the tool's name, or, where the tools are no longer offered, by the shape of the call and its result. */
function kindOf(result: ToolResult, tools: parameters.Toolbox): string {
  if (tools.delegates.some((tool) => tool.name === result.name)) return "delegate";
  if (tools.others.some((tool) => tool.name === result.name)) return "other";
  for (const kind of ["search", "list", "read"] as const) if (tools[kind]?.name === result.name) return kind;
  const names = Object.keys(result.arguments);
  const hasFile = names.some((name) => parameters.fileParameter.test(name));
  if (names.some((name) => /^(?:question|task|input|prompt)$/i.test(name))) return "delegate";
  if (names.some((name) => parameters.queryParameter.test(name)) && findingsIn(result.text).length > 0) return "search";
  if (hasFile) return "read";
  return names.length === 0 && filesIn(result.text).length > 0 ? "list" : "other";
}

function answer(situation: Situation, text: string): Plan {
  return { kind: "answer", text, isForPerson: !situation.assignment.isDelegated };
}

/** Results that are no errors, as text. */
function textsOf(results: readonly ToolResult[]): string[] {
  return results.flatMap((result) => (result.isError ? [] : [result.text]));
}

/** The last word when no tool may be called: from whatever was gathered before. */
function answerWithoutTools(situation: Situation): Plan {
  if (situation.read.length + situation.searched.length > 0) return answerReading(situation);
  return answer(situation, answerFromConversation(situation.assignment, []));
}

/** A lead: look around, hand each relevant file to a delegate, all at once. */
function planTeam(situation: Situation): Plan {
  const { tools, assignment, keywords } = situation;
  const looking = [tools.list, tools.search].filter((tool) => tool !== undefined);
  const named = pathsIn(assignment.question);
  if (looking.length === 0) return { kind: "calls", calls: delegations(situation, named) };
  if (situation.searched.length + situation.listed.length === 0)
    return { kind: "calls", calls: lookingCalls(situation) };
  const files = textsOf(situation.listed).flatMap(filesIn);
  const most = boundInInstructions(assignment.instructions, defaultMostFiles);
  const chosen = selectFiles(keywords, { searches: textsOf(situation.searched), listed: files }, most);
  const known = named.filter((path) => files.some((file) => file.path === path));
  const wanted = [...new Set([...known, ...chosen])].slice(0, most);
  if (wanted.length > 0) return { kind: "calls", calls: delegations(situation, wanted) };
  const failed = [...situation.searched, ...situation.listed].filter((result) => result.isError);
  const why = failed.map((result) => `\n\n${result.name} failed: ${result.text}`).join("");
  return answer(situation, `${nothingFound(keywords, [])}${why}`);
}

function lookingCalls({ tools, keywords, assignment }: Situation): PlannedCall[] {
  const calls: PlannedCall[] = [];
  if (tools.list !== undefined) calls.push({ name: tools.list.name, arguments: {} });
  if (tools.search !== undefined) calls.push(searchCall(tools.search, keywords, assignment.file));
  return calls;
}

function searchCall(tool: ModelTool, keywords: Keywords, file: string | undefined): PlannedCall {
  const query = parameters.parameterOf(tool, parameters.queryParameter)?.name ?? "query";
  const limit = parameters.parameterOf(tool, parameters.limitParameter);
  const fileName = parameters.parameterOf(tool, parameters.fileParameter)?.name;
  return {
    name: tool.name,
    arguments: {
      [query]: queryOf(keywords),
      ...(fileName !== undefined && file !== undefined ? { [fileName]: file } : {}),
      ...(limit !== undefined ? { [limit.name]: Math.min(hitsWanted, limit.maximum ?? hitsWanted) } : {}),
    },
  };
}

/** One call per file to the delegate that takes files; without files, one to each delegate. */
function delegations({ tools, assignment }: Situation, files: readonly string[]): PlannedCall[] {
  const forFiles =
    tools.delegates.find((tool) => parameters.parameterOf(tool, parameters.fileParameter) !== undefined) ??
    tools.delegates[0];
  if (files.length > 0 && forFiles !== undefined)
    return files.map((file) => delegation(forFiles, assignment.question, file));
  const named = tools.delegates.filter((tool) => assignment.question.toLowerCase().includes(tool.name.toLowerCase()));
  return (named.length > 0 ? named : tools.delegates).map((tool) => delegation(tool, assignment.question, undefined));
}

function delegation(tool: ModelTool, question: string, file: string | undefined): PlannedCall {
  const fileName = parameters.parameterOf(tool, parameters.fileParameter)?.name;
  const questionName = parameters.parameterOf(tool, parameters.questionParameter)?.name ?? "question";
  const asked = file !== undefined && fileName === undefined ? `File: ${file}\nQuestion: ${question}` : question;
  const others = parameters
    .requiredOf(tool)
    .filter((parameter) => parameter.name !== fileName && parameter.name !== questionName);
  return {
    name: tool.name,
    arguments: {
      ...(fileName !== undefined && file !== undefined ? { [fileName]: file } : {}),
      [questionName]: asked,
      ...Object.fromEntries(
        others
          .filter((parameter) => parameter.type === "string")
          .map((parameter) => [parameter.name, parameter.choices[0] ?? asked]),
      ),
    },
  };
}

/** A reader: search, read around the hits, extract. */
function planReading(situation: Situation): Plan {
  const { tools, assignment, keywords } = situation;
  if (situation.read.length > 0) return answerReading(situation);
  if (situation.searched.length === 0 && tools.search !== undefined)
    return { kind: "calls", calls: [searchCall(tools.search, keywords, assignment.file)] };
  const found = situation.searched.flatMap((result) => (result.isError ? [] : findingsIn(result.text)));
  const hits = assignment.file === undefined ? found : found.filter((hit) => hit.path === assignment.file);
  const { read } = tools;
  if (read === undefined) return answerReading(situation);
  const calls =
    hits.length > 0
      ? rangesAround(keywords, hits).map((range) => readCall(read, range.path, range))
      : wholeFiles(situation).map((path) => readCall(read, path));
  return calls.length > 0 ? { kind: "calls", calls } : answerReading(situation);
}

/** Without a search to go by, the files that were named. */
function wholeFiles({ tools, assignment }: Situation): string[] {
  if (tools.search !== undefined) return [];
  return assignment.file === undefined ? pathsIn(assignment.question) : [assignment.file];
}

function readCall(
  tool: ModelTool,
  path: string,
  range?: { readonly first: number; readonly last: number },
): PlannedCall {
  const file = parameters.parameterOf(tool, parameters.fileParameter)?.name ?? "path";
  const first = parameters.parameterOf(tool, parameters.firstLineParameter);
  const last = parameters.parameterOf(tool, parameters.lastLineParameter);
  const isRange = range !== undefined && first !== undefined && last !== undefined;
  return {
    name: tool.name,
    arguments: { [file]: path, ...(isRange ? { [first.name]: range.first, [last.name]: range.last } : {}) },
  };
}

function answerReading(situation: Situation): Plan {
  const { assignment, keywords } = situation;
  const reads = situation.read.filter((result) => !result.isError);
  const searches = situation.searched.filter((result) => !result.isError);
  const failed = [...situation.read, ...situation.searched].filter((result) => result.isError);
  if (failed.length > 0 && reads.length + searches.length === 0) return answer(situation, answerFromTools(failed));
  const candidates = candidatesIn(reads, searches, assignment.file);
  const gathered = { candidates, searches: textsOf(searches) };
  return answer(
    situation,
    assignment.isDelegated ? reportText(keywords, gathered, assignment.file) : answerFromReading(keywords, gathered),
  );
}
