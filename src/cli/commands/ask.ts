import { folderAt } from "../../demo/index.ts";
import { InvalidInputError, NotFoundError } from "../../errors/index.ts";
import { type BudgetOptions, budgetOf } from "../budget-options.ts";
import type { CliContext } from "../cli-context.ts";
import type { ExitCode } from "../failure.ts";
import { jobOfQuestion, questionToResume } from "../job/ask-job.ts";
import { freshId } from "../job/find-agent.ts";
import { goOn } from "../job/go-on.ts";
import { defaultQuestion, newAskJob, offlineName, type JobOptions } from "../job/job.ts";
import { runJob } from "../job/run-job.ts";
import { type StoreOptions, type StorePlace, storePlace, withStore } from "../job/store-place.ts";

export interface AskOptions extends JobOptions, BudgetOptions, StoreOptions {
  readonly question?: string | undefined;
  readonly files?: string | undefined;
  readonly resume?: boolean | undefined;
  readonly model?: string | undefined;
  readonly maxReaders?: number | undefined;
}

export async function askCommand(context: CliContext, options: AskOptions): Promise<ExitCode> {
  const store = storePlace(context, options);
  if (options.resume === true) return await resumeQuestion(context, store, options);
  const { environment, directory } = context;
  const job = newAskJob(
    {
      question: options.question ?? defaultQuestion,
      files: options.files === undefined ? null : folderAt(options.files, directory),
      model: options.model,
      maxReaders: options.maxReaders,
    },
    environment,
  );
  if (job.model === offlineName && options.model === undefined) sayOffline(context);
  return await withStore(store, "open", async (stores) => {
    const rootAgentId = await freshId(stores, "ask");
    const asked = jobOfQuestion(context, job, { rootAgentId, store, isResumed: false });
    return await runJob(context, stores, { ...asked, budget: budgetOf(options) }, options);
  });
}

async function resumeQuestion(context: CliContext, store: StorePlace, options: AskOptions): Promise<ExitCode> {
  const { question, files, maxReaders } = options;
  if (question !== undefined || files !== undefined || maxReaders !== undefined) {
    throw new InvalidInputError(
      "--resume carries a question on as it was asked; leave out --question, --files and --max-readers",
    );
  }
  return await withStore(store, "openExisting", async (stores) => {
    const found = await questionToResume(stores);
    if (found === undefined) {
      throw new NotFoundError(`no question was asked in ${store.name} yet; ask one without --resume`);
    }
    const { record, asked } = found;
    const wanted = options.model === undefined ? asked : { ...asked, model: options.model };
    const job = () => jobOfQuestion(context, wanted, { rootAgentId: record.agentId, store, isResumed: true });
    return await goOn(context, stores, { root: record, store, job, budget: budgetOf(options) }, options);
  });
}

function sayOffline({ note }: CliContext): void {
  note("No OPENAI_API_KEY: the rule-based offline engine answers (it is no language model).");
}
