import {
  answerFromConversation,
  answerFromTools,
  type Assignment,
  type LanguageModel,
  missingTerms,
  type OfflineModelOptions,
  oneLine,
  type Plan,
  plannedModel,
  termsOf,
  type ToolResult,
} from "../model/index.ts";

/** The tools of the team by the names that its model knows. */
export const toolNames = { list: "list_files", search: "search_files", read: "read_file", reader: "reader" } as const;

const defaultMostFiles = 6;
const hitsWanted = 40;
const mostInReport = 6;
const mostPerFile = 4;
const mostInAnswer = 9;

/** A statement with its source, as search results and reports have them: `path:line: text [under: A > B]`. */
interface Finding {
  readonly path: string;
  readonly line: string;
  readonly text: string;
  readonly headings: string;
}

/**
 * The rule-based engine of `troupe ask`, behind the port of a language model. It plays the two parts of the team over a
 * folder: the lead lists and searches the files, sends a reader to each that matters and merges the reports; a reader
 * searches one file and quotes the statements that speak to the question. Same limits as `offlineModel`.
 */
export function documentModel(options: OfflineModelOptions = {}): LanguageModel {
  return plannedModel(planNext, options);
}

async function planNext(assignment: Assignment): Promise<Plan> {
  const { prompt, file, earlier, results, tools } = assignment;
  const questions = assignment.questions.length > 0 ? assignment.questions : [{ text: prompt, terms: termsOf(prompt) }];
  const words = [...new Set(questions.flatMap(({ terms }) => [...terms.values()]))];
  const isOffered = (name: string): boolean => tools.some((tool) => tool.name === name);
  const resultsOf = (name: string): ToolResult[] => results.filter((result) => result.name === name);

  const searches = resultsOf(toolNames.search);
  if (searches.length === 0 && words.length > 0 && isOffered(toolNames.search)) {
    const query = [prompt.slice(0, 900), ...words.filter((word) => !prompt.includes(word))].join(" ").slice(0, 1_000);
    const search = { query, maxResults: hitsWanted, ...(file === undefined ? {} : { file }) };
    const list = isOffered(toolNames.list) ? [{ name: toolNames.list, arguments: {} }] : [];
    return [...list, { name: toolNames.search, arguments: search }];
  }
  const reports = resultsOf(toolNames.reader);
  const hits = findingsIn(searches).filter(({ text, headings }) =>
    questions.some(({ terms }) => !/^#{1,6}\s/.test(text) && missingTerms(terms, `${text}\n${headings}`) <= 0),
  );
  if (reports.length === 0 && hits.length > 0 && isOffered(toolNames.reader)) {
    const instructions = earlier.map(({ text }) => text).join("\n");
    const most = Number(/\bat most (\d{1,3}) files?\b/i.exec(instructions)?.[1] ?? defaultMostFiles);
    // A hit counts less, the lower it ranks; files that the question names come first.
    const scoreOf = (file: string): number =>
      hits.reduce(
        (sum, { path }, at) => sum + (path === file ? 1 / (at + 2) : 0),
        prompt.includes(file) ? hits.length : 0,
      );
    const files = [...new Set(hits.map(({ path }) => path))].sort((one, other) => scoreOf(other) - scoreOf(one));
    return files
      .slice(0, most)
      .map((path) => ({ name: toolNames.reader, arguments: { file: path, question: prompt } }));
  }
  if (results.length === 0) return await answerFromConversation(assignment);
  if (results.every(({ isError }) => isError)) return answerFromTools(results);
  if (file !== undefined) {
    const lines = hits.slice(0, mostInReport).map(({ path, line, text }) => `${path}:${line}: ${text}`);
    return lines.join("\n") || `Nothing about ${words.join(", ")} was found in ${file}.`;
  }
  const failures = reports.filter(({ isError }) => isError);
  const notes = failures.map(
    (one) => `Not answered by ${/"file":"([^"]*)"/.exec(one.arguments)?.[1]}: ${oneLine(one.text).slice(0, 300)}`,
  );
  const all = reports.length > 0 ? reports.flatMap((report) => findingsIn([report]).slice(0, mostPerFile)) : hits;
  const found = all.filter(({ text }, at) => all.findIndex((other) => other.text === text) === at);
  return [sourcedText(prompt, words, found.slice(0, mostInAnswer)), ...notes].join("\n\n");
}

function findingsIn(results: readonly ToolResult[]): Finding[] {
  const lines = results.flatMap(({ isError, text }) => (isError ? [] : text.split("\n")));
  return lines.flatMap((whole): Finding[] => {
    const [, path, line, text, headings = ""] =
      /^(?:- )?(\S[^:\n]{0,300}):(\d{1,9}): (.*?)(?: \[under: (.*)\])?$/.exec(whole) ?? [];
    if (path === undefined || line === undefined || text === undefined) return [];
    return [{ path, line, text, headings }];
  });
}

/** The answer for a person: each statement once, with its source, by files. */
function sourcedText(question: string, words: readonly string[], found: readonly Finding[]): string {
  if (found.length === 0)
    return `Nothing was found on “${oneLine(question)}”: no passage speaks of ${words.join(", ")}.`;
  const paths = [...new Set(found.map(({ path }) => path))];
  const sections = paths.map((path) => {
    const own = found.filter((finding) => finding.path === path);
    const lines = own.map(({ line, text }) => `- ${text} (${path}:${line})`);
    return [...(paths.length === 1 ? [] : [path]), ...lines].join("\n");
  });
  return [
    `On “${oneLine(question)}”, ${paths.length === 1 ? `${paths[0]} says` : `${paths.length} files say`}:`,
    ...sections,
  ].join("\n\n");
}
