import { createRedactor, optionsOf, type Redactor } from "../../base/index.ts";
import { NotFoundError } from "../../errors/index.ts";
import { type AgentRequest, agentOfTurn, callOfRequest, partsOfCall } from "../../state/index.ts";
import { areShared, type RunFile } from "../../stores/index.ts";
import { messagePage, type MessageQuery } from "./agent-journal.ts";
import {
  type AgentMachines,
  type ArtifactView,
  type CallDetail,
  type EvalRun,
  type Evals,
  FEED_VERSION,
  type FeedInfo,
  type MessagePage,
  type OwnerRow,
  type PageData,
  type ProcessRow,
  type ScheduleRow,
  type Prompt,
  type PromptRow,
  type QueueRow,
  type RowView,
  type RunForks,
  type RunHead,
  type RunPage,
  type RunReplay,
  type Scope,
  type SearchPage,
  type StepPage,
  type StoredAccounts,
  type TransitionPage,
} from "./answers.ts";
import { callDetail } from "./call-detail.ts";
import { type EvalsSource, shownEvalRuns, shownEvals } from "./evals.ts";
import { forksOf } from "./forks.ts";
import { machinesOf, transitionPage } from "./machines.ts";
import { ownersOf, processRows, queueRows } from "./owners.ts";
import { scheduleRows } from "./schedules.ts";
import { pageData } from "./page-data.ts";
import { promptOf, promptRows } from "./prompts.ts";
import { messageQuerySchema, runQuerySchema, searchQuerySchema } from "./query-options.ts";
import { exportRun } from "./run-file.ts";
import { type FeedSink, RunReader, type RunWatch, WatchedRun } from "./run-watch.ts";
import type { RunSummary } from "../run-model/summary-facts.ts";
import { runHead, runPage, type RunQuery, storedAccountsOf } from "./runs.ts";
import { type SearchQuery, searchRun } from "./search.ts";
import { actorOf, agentOf, type FeedSource, agentKeyIn, Sources } from "./source.ts";
import { stepPage } from "./step-contents.ts";
import { summaryOfRun } from "./summary-of-run.ts";
import { feedEntryOf, feedRowOf, type Visibility, shownRequest } from "./visible-values.ts";
import type { FeedRow } from "./messages.ts";
import type { Actor, Talk } from "./act.ts";
import type { Forks } from "./fork-acts.ts";

/** Options of `Feed`. */
export interface FeedOptions {
  /** Return only names, ids and numbers: nothing that a person, a model or a tool wrote. Default false. */
  readonly namesOnly?: boolean | undefined;
  /** Removes secrets from texts. Default `createRedactor()`, which removes the secrets of the environment. */
  readonly redactor?: Redactor | undefined;
  /** The run that a page opens first. Default: the list of runs. */
  readonly run?: string | undefined;
  /** Path of the same server's API documentation, to which the page links. Default: none. */
  readonly apiDocs?: string | undefined;
  /** A report of evals to show. Default: none. */
  readonly evals?: EvalsSource | undefined;
}

/** Most characters of an artifact in an answer. */
const LONGEST_ARTIFACT = 1_000_000;
/** Most characters of base64 in an answer: about 20 MB. A part of a binary would be of no use, so a longer one is left out. */
const LONGEST_BINARY = 28_000_000;
const ROWS_AT_A_TIME = 500;

/**
 * Shows stored runs to pages and programs: runs of this process, of other processes, and finished runs. It reads
 * everything from the stores, so watching does not affect the agents.
 * Owns: the sources, and the subscriptions to watched runs. Does not own: stores, runtimes and sockets.
 */
export class Feed {
  readonly #sources = new Sources();
  readonly #sight: Visibility;
  readonly #places: Pick<FeedInfo, "run" | "apiDocs">;
  readonly #watched = new Map<string, WatchedRun>();
  readonly #evals: EvalsSource | undefined;

  constructor({ namesOnly = false, redactor = createRedactor(), run, apiDocs, evals }: FeedOptions = {}) {
    this.#sight = { namesOnly, redactor };
    this.#evals = evals;
    this.#places = { ...(run === undefined ? {} : { run }), ...(apiDocs === undefined ? {} : { apiDocs }) };
  }

  /** Adds the runs of a source; the returned function removes them. */
  add(source: FeedSource): () => void {
    return this.#sources.add(source);
  }

  info(scope: Scope): FeedInfo {
    const sources = this.#sources.all();
    const isLive = sources.some(({ runtime }) => runtime?.isOpen === true);
    const isWritten = isLive || sources.some(({ stores, isWritten: isSent }) => isSent ?? areShared(stores));
    const actors = scope === "act" ? sources.flatMap((source) => actorOf(source) ?? []) : [];
    const definitions = actors.flatMap(({ talk }) => talk?.definitions ?? []);
    const acts = actors.length === 0 ? "none" : actors.some(({ talk }) => talk !== undefined) ? "talk" : "decide";
    const isFile = sources.length > 0 && sources.every((source) => source.isFile === true);
    return {
      version: FEED_VERSION,
      scope,
      namesOnly: this.#sight.namesOnly,
      source: isLive ? "process" : isFile ? "file" : "store",
      stores: sources[0]?.stores.kind ?? "none",
      tenant: sources[0]?.tenant ?? "",
      text: isWritten && !this.#sight.namesOnly ? "written" : "committed",
      definitions,
      acts,
      hasQueues: sources.some(({ queues }) => queues !== undefined),
      ...(this.#evals === undefined ? {} : { hasEvals: true as const }),
      now: Date.now(),
      ...this.#places,
    };
  }

  /** A page of runs, newest first. Rejects with `InvalidInputError` for a wrong filter. */
  async runs(query: RunQuery): Promise<RunPage> {
    return await runPage(this.#sources, optionsOf(query, "feed.runs()", runQuerySchema), this.#sight);
  }

  async head(runId: string): Promise<RunHead> {
    return await runHead(await this.#sources.ofRun(runId), this.#sight);
  }

  /** The summary of a run, as its page shows it: why it stopped or what it waits for, who spent it, what was slow. */
  async summary(runId: string): Promise<RunSummary> {
    return await summaryOfRun(await this.#sources.ofRun(runId), this.#sight);
  }

  /** Sends the stored rows of a run after the cursor, then new rows. Rejects with `NotFoundError` for an unknown run. */
  async watch(
    runId: string,
    place: { readonly after: number; readonly credit: number },
    sink: FeedSink,
  ): Promise<RunWatch> {
    const source = await this.#sources.ofRun(runId);
    const run = this.#watched.get(runId) ?? new WatchedRun(this.#sources, source, this.#sight);
    this.#watched.set(runId, run);
    return new RunReader(run, place, sink, (watch) => {
      if (run.remove(watch) && this.#watched.get(runId) === run) this.#watched.delete(runId);
    });
  }

  async machines(runId: string, agentId: string, at: number | null): Promise<AgentMachines> {
    return await machinesOf(await this.#sources.ofRun(runId), agentId, at);
  }

  async transitions(runId: string, agentId: string, after?: string): Promise<TransitionPage> {
    return await transitionPage(await this.#sources.ofRun(runId), agentId, after);
  }

  async messages(runId: string, agentId: string, query: MessageQuery): Promise<MessagePage> {
    const options = optionsOf(query, "feed.messages()", messageQuerySchema);
    return await messagePage(await this.#sources.ofRun(runId), agentId, options, this.#sight);
  }

  async prompts(runId: string, agentId: string): Promise<PromptRow[]> {
    return await promptRows(await this.#sources.ofRun(runId), agentId);
  }

  async prompt(runId: string, agentId: string, seq: number): Promise<Prompt> {
    return await promptOf(await this.#sources.ofRun(runId), agentId, seq, this.#sight);
  }

  async call(runId: string, callId: string): Promise<CallDetail> {
    return await callDetail(await this.#sources.ofRun(runId), callId, this.#sight);
  }

  async row(runId: string, cursor: number): Promise<RowView> {
    const { stores, tenant } = await this.#sources.ofRun(runId);
    const [row] = await stores.readTree(tenant, runId, cursor - 1, 1);
    if (row?.cursor !== cursor) throw new NotFoundError(`run "${runId}" has no row ${cursor}`);
    const { namesOnly, redactor } = this.#sight;
    const { version, agentId, entries } = row;
    const shown = entries.map((entry) => (namesOnly ? feedEntryOf(entry, this.#sight) : redactor.value(entry)));
    return { version, cursor, agentId, entries: shown as RowView["entries"] };
  }

  /** One page of rows after a cursor, for programs that read a run once. */
  async rows(runId: string, after: number): Promise<FeedRow[]> {
    const { stores, tenant } = await this.#sources.ofRun(runId);
    const rows = await stores.readTree(tenant, runId, after, ROWS_AT_A_TIME);
    return rows.map((row) => feedRowOf(row, this.#sight));
  }

  async requests(runId: string, status?: AgentRequest["status"]): Promise<AgentRequest[]> {
    const { stores, tenant } = await this.#sources.ofRun(runId);
    const found = await stores.requests({ tenant, rootAgentId: runId, status, limit: 1_000 });
    return found.map((request) => shownRequest(request, this.#sight));
  }

  /** The current state of one request. */
  async request(requestId: string): Promise<AgentRequest | undefined> {
    const agentId = agentOfTurn(partsOfCall(callOfRequest(requestId)).turnId);
    const source = await this.#sources.ofAgent(agentId);
    const found = await source.stores.request(agentKeyIn(source, agentId), requestId);
    return found && shownRequest(found, this.#sight);
  }

  /** Contents of the steps of a run, to compare it with another run; `after` is the `next` of the previous page. */
  async steps(runId: string, after?: string): Promise<StepPage> {
    return await stepPage(await this.#sources.ofRun(runId), after, this.#sight);
  }

  /** The family of forks of a run, and the points at which it can be forked. */
  async forks(runId: string): Promise<RunForks> {
    return await forksOf(await this.#sources.ofRun(runId), this.#sight);
  }

  /** Compares a run with the definitions of its process. Rejects with `NotFoundError` if its source has none. */
  async replay(runId: string): Promise<RunReplay> {
    const { divergence, ...compared } = await (await this.forksIn(runId)).replay(runId);
    const { namesOnly, redactor } = this.#sight;
    const shown = (text: string): string => (namesOnly ? "" : redactor.text(text));
    if (!divergence) return { ...compared, divergence };
    const { expected, got, diff } = divergence;
    const texts = { expected: shown(expected), got: shown(got), diff: shown(diff) };
    return { ...compared, divergence: { ...divergence, ...texts } };
  }

  /** The `Forks` of the process that runs a run. Rejects with `NotFoundError` if its source has none. */
  async forksIn(runId: string): Promise<Forks> {
    const { forks } = actorOf(await this.#sources.ofRun(runId)) ?? {};
    if (forks) return forks;
    throw new NotFoundError(
      `run "${runId}" cannot be forked or replayed here: only the process that runs agents has their definitions; use "troupe fork" and "troupe replay"`,
    );
  }

  async search(runId: string, query: SearchQuery): Promise<SearchPage> {
    const options = optionsOf(query, "feed.search()", searchQuerySchema);
    return await searchRun(await this.#sources.ofRun(runId), options, this.#sight);
  }

  async storedAccounts(runId: string): Promise<StoredAccounts> {
    return await storedAccountsOf(await this.#sources.ofRun(runId));
  }

  async owners(runId: string): Promise<OwnerRow[]> {
    return await ownersOf(await this.#sources.ofRun(runId));
  }

  /** The processes of all sources. */
  async processes(): Promise<ProcessRow[]> {
    return (await Promise.all(this.#sources.all().map(processRows))).flat();
  }

  /** The schedules of all sources. */
  async schedules(): Promise<ScheduleRow[]> {
    return (await Promise.all(this.#sources.all().map(scheduleRows))).flat();
  }

  /** The queues of all sources; `null` if no source has queues. */
  async queues(): Promise<QueueRow[] | null> {
    const queues = this.#sources.all().flatMap((source) => source.queues ?? []);
    if (queues.length === 0) return null;
    return (await Promise.all(queues.map((one) => queueRows(one, this.#sight)))).flat();
  }

  /** The report of evals; `null` if the feed has none. */
  async evals(): Promise<Evals | null> {
    return this.#evals === undefined ? null : await shownEvals(this.#evals, this.#sight);
  }

  /** The runs of a case of the report, those that failed first. Rejects with `NotFoundError` for an unknown case. */
  async evalRuns(key: string): Promise<EvalRun[]> {
    if (!this.#evals) throw new NotFoundError("there is no report of evals here");
    return await shownEvalRuns({ source: this.#evals, sources: this.#sources }, key, this.#sight);
  }

  async artifact(runId: string, agentId: string, artifactId: string): Promise<ArtifactView> {
    const source = await this.#sources.ofRun(runId);
    await agentOf(source, agentId);
    const artifact = await source.stores.artifact(agentKeyIn(source, agentId), artifactId);
    if (!artifact) throw new NotFoundError(`agent "${agentId}" has no artifact "${artifactId}"`);
    const { namesOnly, redactor } = this.#sight;
    if (namesOnly) return { ...artifact, name: "", content: "", isCut: artifact.content !== "" };
    const name = redactor.text(artifact.name);
    if (artifact.encoding === "base64") {
      const isCut = artifact.content.length > LONGEST_BINARY;
      return { ...artifact, name, content: isCut ? "" : artifact.content, isCut };
    }
    const content = redactor.text(artifact.content.slice(0, LONGEST_ARTIFACT));
    return { ...artifact, name, content, isCut: artifact.content.length > LONGEST_ARTIFACT };
  }

  /** The whole run as one value, which `importRun` reads back. */
  async export(runId: string): Promise<RunFile> {
    return await exportRun(await this.#sources.ofRun(runId), this.#sight);
  }

  /** Everything that a page shows of a run, as one value; `pageOfRun` turns it into a file. */
  async page(runId: string): Promise<PageData> {
    return await pageData(await this.#sources.ofRun(runId), this.#sight);
  }

  /** The actor for the agents of a run. Rejects with `NotFoundError` if its source is read-only. */
  async actor(agentId: string): Promise<Actor> {
    const actor = actorOf(await this.#sources.ofAgent(agentId));
    if (actor) return actor;
    throw new NotFoundError(`agent "${agentId}" can only be watched here`);
  }

  /** The `Talk` that creates agents from a definition. Throws `NotFoundError` if no source has the definition. */
  talk(definition: string): Talk {
    for (const source of this.#sources.all()) {
      const { talk } = actorOf(source) ?? {};
      if (talk?.definitions.includes(definition) === true) return talk;
    }
    throw new NotFoundError(`no agent of the definition "${definition}" can be created here`);
  }

  /** Ends all subscriptions. Leaves the stores open. */
  close(): void {
    for (const run of this.#watched.values()) run.close();
    this.#watched.clear();
  }
}
