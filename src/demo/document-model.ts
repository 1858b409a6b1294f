import type { Assignment, LanguageModel, OfflineModelOptions, Plan } from "../model/index.ts";
import {
  answerFromConversation,
  answerFromTools,
  missingTerms,
  oneLine,
  plannedModel,
  termsOf,
} from "../model/index.ts";

/** The team's tools, by the names in the model's prompts. */
export const toolNames = { list: "list_files", search: "search_files", read: "read_file", reader: "reader" } as const;

const most = { hits: 40, files: 6, inReport: 6, ofReport: 4, inAnswer: 9 };

/** A statement with its source, as in search results and reports. */
type Finding = Readonly<Record<"path" | "line" | "text" | "headings", string>>;
const findings = /^(?:- )?(?<path>\S[^:\n]{0,300}):(?<line>\d{1,9}): (?<text>.*?)(?<headings>(?: \[under: .*\])?)$/gm;

/**
 * The rule-based engine of `troupe ask`, implemented as a language model. It plays both roles of the team for a folder:
 * the lead lists and searches the files, sends a reader to each relevant file and merges the reports; a reader searches
 * one file and quotes the statements relevant to the question. Same limits as `offlineModel`.
 */
export function documentModel(options: OfflineModelOptions = {}): LanguageModel {
  return plannedModel(planNext, options);
}

async function planNext(assignment: Assignment): Promise<Plan> {
  const { prompt, file, earlier, results, tools } = assignment;
  const questions = assignment.questions.length > 0 ? assignment.questions : [{ text: prompt, terms: termsOf(prompt) }];
  const words = [...new Set(questions.flatMap(({ terms }) => [...terms.values()]))];
  const isOffered = (name: string): boolean => tools.some((tool) => tool.name === name);

  const searches = results.filter(({ name }) => name === toolNames.search);
  if (searches.length === 0 && words.length > 0 && isOffered(toolNames.search)) {
    const search = { query: prompt.slice(0, 1_000), maxResults: most.hits, ...(file === undefined ? {} : { file }) };
    const list = isOffered(toolNames.list) ? [{ name: toolNames.list, arguments: {} }] : [];
    return [...list, { name: toolNames.search, arguments: search }];
  }
  const hits = searches.flatMap(findingsIn).filter(({ text, headings }) => {
    const isFitting = questions.some(({ terms }) => missingTerms(terms, `${text}\n${headings}`) <= 0);
    return isFitting && !/^#{1,6} /.test(text);
  });
  const reports = results.filter(({ name }) => name === toolNames.reader);
  if (reports.length === 0 && hits.length > 0 && isOffered(toolNames.reader)) {
    // A lower-ranked hit counts less; files named in the question come first.
    const scores = new Map(hits.map(({ path }) => [path, prompt.includes(path) ? hits.length : 0]));
    for (const [at, { path }] of hits.entries()) scores.set(path, (scores.get(path) ?? 0) + 1 / (at + 2));
    const files = [...scores].sort(([, one], [, other]) => other - one);
    const [, bound] = /\bat most (\d{1,3}) files?\b/i.exec(earlier.map(({ text }) => text).join("\n")) ?? [];
    const chosen = files.slice(0, Number(bound ?? most.files));
    return chosen.map(([path]) => ({ name: toolNames.reader, arguments: { file: path, question: prompt } }));
  }
  if (results.length === 0) return await answerFromConversation(assignment);
  if (results.every(({ isError }) => isError)) return answerFromTools(results);
  if (file !== undefined) {
    const lines = hits.slice(0, most.inReport).map(({ path, line, text }) => `${path}:${line}: ${text}`);
    return lines.join("\n") || `Nothing about ${words.join(", ")} was found in ${file}.`;
  }
  const found = reports.length > 0 ? reports.flatMap((report) => findingsIn(report).slice(0, most.ofReport)) : hits;
  const once = found.filter(({ text }, at) => found.findIndex((other) => other.text === text) === at);
  const notes = reports
    .filter(({ isError }) => isError)
    .map(({ arguments: given, text }) => {
      return `Not answered by ${/"file":"([^"]*)"/.exec(given)?.[1]}: ${oneLine(text).slice(0, 300)}`;
    });
  const nothing = `Nothing was found on “${oneLine(prompt)}”: no passage speaks of ${words.join(", ")}.`;
  const answer = once.length === 0 ? [nothing] : sourced(oneLine(prompt), once.slice(0, most.inAnswer));
  return [...answer, ...notes].join("\n\n");
}

function findingsIn({ isError, text }: Assignment["results"][number]): Finding[] {
  return Array.from(isError ? [] : text.matchAll(findings), ({ groups }) => groups as Finding);
}

/** The statements with their sources, grouped by file. */
function sourced(question: string, found: readonly Finding[]): string[] {
  const byPath = Map.groupBy(found, ({ path }) => path);
  const who = byPath.size === 1 ? `${found[0]?.path} says` : `${byPath.size} files say`;
  const sections = Array.from(byPath, ([path, own]) => {
    const lines = own.map(({ line, text }) => `- ${text} (${path}:${line})`);
    return [...(byPath.size === 1 ? [] : [path]), ...lines].join("\n");
  });
  return [`On “${question}”, ${who}:`, ...sections];
}
