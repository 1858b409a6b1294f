import { InvalidInputError, NotFoundError } from "../../errors/index.ts";
import { type BudgetOptions, budgetOf } from "../budget-options.ts";
import type { CliContext } from "../cli-context.ts";
import { folderAt } from "../documents.ts";
import type { ExitCode } from "../failure.ts";
import { readArgument } from "../inline/standard-input.ts";
import { jobOfQuestion, questionToResume, withLeadTools } from "../job/ask-job.ts";
import { freshId } from "../job/find-agent.ts";
import { goOn } from "../job/go-on.ts";
import { pathOf } from "../mcp/mcp-tools.ts";
import { type AskJob, defaultQuestion, newAskJob, offlineName, type JobOptions } from "../job/job.ts";
import { watchedSpeed } from "../job/inspection.ts";
import { runJob } from "../job/run-job.ts";
import type { ListenOptions } from "./serve.ts";
import { type StoreOptions, type StoreLocation, storeLocation, withStore } from "../job/store-location.ts";

export interface AskOptions extends JobOptions, BudgetOptions, StoreOptions, ListenOptions {
  readonly question?: string | undefined;
  readonly files?: string | undefined;
  readonly resume?: boolean | undefined;
  readonly model?: string | undefined;
  readonly maxReaders?: number | undefined;
  readonly serve?: boolean | undefined;
  /** File with MCP servers, whose tools the lead gets. */
  readonly mcp?: string | undefined;
}

export async function askCommand(context: CliContext, options: AskOptions): Promise<ExitCode> {
  assertServeAlone(options);
  const store = storeLocation(context, options);
  if (options.resume === true) return await resumeQuestion(context, store, options);
  const { environment, directory } = context;
  const asking = newAskJob(
    {
      files: options.files === undefined ? null : folderAt(options.files, directory),
      question: options.question === undefined ? defaultQuestion : await readArgument(context, options.question),
      model: options.model,
      maxReaders: options.maxReaders,
    },
    environment,
  );
  const job = { ...asking, mcp: pathOf(context, options.mcp) };
  if (job.model === offlineName && options.model === undefined) sayOffline(context);
  if (options.serve === true) {
    const { serveAsk } = await import("./serve.ts");
    return await serveAsk(context, job, options);
  }
  return await withStore(store, "open", async (stores) => {
    const rootAgentId = await freshId(stores, "ask");
    const tokensPerSecond = watchedSpeed(context, options.inspect);
    const place = { rootAgentId, store, isResumed: false, tokensPerSecond };
    const asked = await withLeadTools(context, jobOfQuestion(context, job, place), job);
    return await runJob(context, stores, { ...asked, budget: budgetOf(options) }, placed(options, job));
  });
}

/** Throws `InvalidInputError` for options that require --serve, or conflict with it. */
function assertServeAlone({ serve, ...options }: AskOptions): void {
  const { port, host, auth, surfaces, chats, cors, hosts, log, metrics, proxies, drainSeconds } = options;
  const { resume, json, quiet, stately, inspect, mcp } = options;
  const { webhookKeys, webhookOrigin } = options;
  const noPage = options.page === false ? true : undefined;
  const ofServer = {
    port,
    host,
    auth,
    surfaces,
    chats,
    cors,
    hosts,
    log,
    metrics,
    proxies,
    drainSeconds,
    webhookKeys,
    webhookOrigin,
    "no-page": noPage,
  };
  const given = serve === true ? { resume, json, quiet, stately, inspect, mcp } : ofServer;
  const [strange] = Object.entries(given).find(([, value]) => value !== undefined) ?? [];
  if (serve === true && budgetOf(options) !== undefined) {
    throw new InvalidInputError("limits cannot be combined with --serve: each turn has the team's limits");
  }
  if (strange === undefined) return;
  const flag = `--${strange.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  throw new InvalidInputError(serve === true ? `${flag} cannot be combined with --serve` : `${flag} requires --serve`);
}

async function resumeQuestion(context: CliContext, store: StoreLocation, options: AskOptions): Promise<ExitCode> {
  const { question, files, maxReaders } = options;
  if (question !== undefined || files !== undefined || maxReaders !== undefined) {
    throw new InvalidInputError(
      "--resume continues an earlier question; leave out --question, --files and --max-readers",
    );
  }
  return await withStore(store, "openExisting", async (stores) => {
    const found = await questionToResume(stores);
    if (found === undefined) {
      throw new NotFoundError(`no question was asked in ${store.name} yet; ask one without --resume`);
    }
    const { record, asked } = found;
    const wanted = {
      ...asked,
      model: options.model ?? asked.model,
      mcp: pathOf(context, options.mcp) ?? asked.mcp,
    };
    const tokensPerSecond = watchedSpeed(context, options.inspect);
    const place = { rootAgentId: record.agentId, store, isResumed: true, tokensPerSecond };
    const job = async () => await withLeadTools(context, jobOfQuestion(context, wanted, place), wanted);
    const going = { root: record, store, job, budget: budgetOf(options) };
    return await goOn(context, stores, going, placed(options, wanted));
  });
}

/** Workers of `ask` have no MCP servers: with their tools the team runs in this process. */
function placed(options: AskOptions, { mcp }: AskJob): AskOptions {
  if (mcp === undefined) return options;
  if (options.on === "workers") throw new InvalidInputError("--on workers cannot be combined with --mcp of `ask`");
  return { ...options, on: "here" };
}

function sayOffline({ note }: CliContext): void {
  note("No OPENAI_API_KEY: the rule-based offline engine answers (it is not a language model).");
}
