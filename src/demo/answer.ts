import { oneLine, type ToolResult } from "../model/index.ts";
import { type Candidate, type Finding, type RankedCandidate, rankCandidates } from "./evidence.ts";
import type { Keywords } from "./keywords.ts";
import { findingsIn } from "./reading.ts";

const mostInReport = 6;
const mostInAnswer = 9;
const mostPerFile = 4;
/** Furthest distance, in lines, between a statement that ends in a colon and what belongs to it. */
const followerDistance = 15;

/** The findings of an agent's own reading. */
interface Gathered {
  readonly candidates: readonly Candidate[];
  /** Results of searches. */
  readonly searches: readonly string[];
}

/** A reader's answer for the agent that asked it: `path:line: statement`, best first. */
export function reportText(keywords: Keywords, gathered: Gathered, file: string | undefined): string {
  const { candidates, searches } = gathered;
  const found = rankCandidates(keywords, candidates, { most: mostInReport, mostPerFile: mostInReport, searches });
  if (found.length === 0)
    return `Nothing about ${wordList(keywords)} was found${file === undefined ? "" : ` in ${file}`}.`;
  return found
    .flatMap((candidate) => [candidate, ...candidate.followers])
    .map((finding) => `${finding.path}:${finding.line}: ${finding.text}`)
    .join("\n");
}

/** The answer for a person, from passages that this agent read itself. */
export function answerFromReading(keywords: Keywords, { candidates, searches }: Gathered): string {
  const found = rankCandidates(keywords, candidates, { most: mostInAnswer, mostPerFile: mostInAnswer, searches });
  return found.length === 0 ? nothingFound(keywords, []) : sourcedText(keywords, found);
}

/** The answer for a person, from the reports of other agents. */
export function answerFromReports(
  keywords: Keywords,
  reports: readonly ToolResult[],
  searches: readonly string[],
): string {
  const finished = reports.filter((report) => !report.isError);
  const notes = notesOn(reports.filter((report) => report.isError));
  const candidates = finished.flatMap((report) => candidatesOfReport(findingsIn(report.text)));
  const found = rankCandidates(keywords, candidates, { most: mostInAnswer, mostPerFile, searches });
  const text = found.length === 0 ? plainReports(keywords, finished) : sourcedText(keywords, found);
  return [text, ...notes].join("\n\n");
}

function candidatesOfReport(findings: readonly Finding[]): Candidate[] {
  const candidates: Candidate[] = [];
  let leader: { finding: Finding; followers: Finding[] } | undefined;
  for (const finding of findings) {
    if (
      leader !== undefined &&
      leader.finding.path === finding.path &&
      finding.line > leader.finding.line &&
      finding.line - leader.finding.line <= followerDistance
    ) {
      leader.followers.push(finding);
      continue;
    }
    const followers: Finding[] = [];
    leader = /:[*_`]*$/u.test(finding.text) ? { finding, followers } : undefined;
    const trust = 1 / (1 + 0.12 * candidates.length);
    candidates.push({
      ...finding,
      surroundings: [{ text: finding.path, weight: 0.3 }],
      opensSection: false,
      followers,
      trust,
      isVouchedFor: true,
    });
  }
  return candidates;
}

/** Reports without sources are passed on as they are, unless they say that there is nothing. */
function plainReports(keywords: Keywords, reports: readonly ToolResult[]): string {
  const saying = reports.filter(
    (report) =>
      findingsIn(report.text).length === 0 &&
      report.text.trim() !== "" &&
      !/^Nothing about .* was found/.test(report.text.trim()),
  );
  const files = reports.map(fileOf).filter((file) => file !== undefined);
  if (saying.length === 0) return nothingFound(keywords, files);
  const [only] = saying;
  if (saying.length === 1 && only !== undefined) return only.text.trim();
  return saying.map((report) => `${headingOf(report)}:\n${report.text.trim()}`).join("\n\n");
}

function headingOf(report: ToolResult): string {
  return fileOf(report) ?? report.name;
}

function fileOf(report: ToolResult): string | undefined {
  const file = report.arguments["file"];
  return typeof file === "string" ? file : undefined;
}

function sourcedText(keywords: Keywords, found: readonly RankedCandidate[]): string {
  const paths = [...new Set(found.map((candidate) => candidate.path))];
  const groups = paths.map((path) => {
    const statements = found.filter((candidate) => candidate.path === path).map(statementText);
    return paths.length === 1 ? statements.join("\n") : `${path}\n${statements.join("\n")}`;
  });
  const where = paths.length === 1 ? paths[0] : `${paths.length} files`;
  return [`On “${oneLine(keywords.question)}”, ${where} ${paths.length === 1 ? "says" : "say"}:`, ...groups].join(
    "\n\n",
  );
}

function statementText(candidate: RankedCandidate): string {
  const lines = candidate.followers.map((follower) => `    ${follower.text} (${follower.path}:${follower.line})`);
  return [`- ${candidate.text} (${candidate.path}:${candidate.line})`, ...lines].join("\n");
}

export function nothingFound(keywords: Keywords, files: readonly string[]): string {
  const looked = files.length === 0 ? "" : ` Read: ${files.join(", ")}.`;
  return `Nothing was found on “${oneLine(keywords.question)}”: no passage speaks of ${wordList(keywords)}.${looked}`;
}

function notesOn(failed: readonly ToolResult[]): string[] {
  return failed.map((report) => `Not answered by ${headingOf(report)}: ${oneLine(report.text).slice(0, 300)}`);
}

function wordList(keywords: Keywords): string {
  const words = [
    ...keywords.phrases.map((phrase) => `“${phrase}”`),
    ...keywords.words.filter((word) => word.isStrong).map((word) => word.text),
  ];
  return words.length === 0 ? "this" : words.slice(0, 12).join(", ");
}
