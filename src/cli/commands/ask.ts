import { InvalidInputError, NotFoundError } from "../../errors/index.ts";
import type { Stores } from "../../stores/index.ts";
import { askedIn, jobOfQuestion, toResume } from "../ask/ask-job.ts";
import { endedPlace } from "../job/ended-place.ts";
import { folderAt } from "../ask/documents.ts";
import { newAskJob, offlineName } from "../ask/job.ts";
import { defaultQuestion } from "../ask/team-texts.ts";
import type { CliContext } from "../cli-context.ts";
import type { ExitCode } from "../exit-codes.ts";
import { openExistingStore, openStore, withStore } from "../job/open-store.ts";
import { freshId, isUnfinished } from "../job/roots.ts";
import { showEnded } from "../job/conclude.ts";
import type { JobOptions } from "../job/job.ts";
import { runJob } from "../job/run-job.ts";

export interface AskOptions extends JobOptions {
  readonly question?: string | undefined;
  readonly files?: string | undefined;
  readonly store: string;
  readonly resume?: boolean | undefined;
  readonly model?: string | undefined;
  readonly maxReaders?: number | undefined;
}

export async function askCommand(context: CliContext, options: AskOptions): Promise<ExitCode> {
  if (options.resume === true) return await resumeQuestion(context, options);
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
  return await withStore(openStore(options.store), async (stores) => {
    const rootAgentId = await freshId(stores, "ask");
    const place = { rootAgentId, storePath: options.store, isResumed: false };
    return await runJob(context, stores, jobOfQuestion(context, job, place), options);
  });
}

async function resumeQuestion(context: CliContext, options: AskOptions): Promise<ExitCode> {
  const { question, files, maxReaders } = options;
  if (question !== undefined || files !== undefined || maxReaders !== undefined) {
    throw new InvalidInputError(
      "--resume carries a question on as it was asked; leave out --question, --files and --max-readers",
    );
  }
  return await withStore(openExistingStore(options.store), (stores) => resumeNewest(context, stores, options));
}

async function resumeNewest(context: CliContext, stores: Stores, options: AskOptions): Promise<ExitCode> {
  const found = toResume(await askedIn(stores));
  if (found === undefined) {
    throw new NotFoundError(`no question was asked in ${options.store} yet; ask one without --resume`);
  }
  const { record, job } = found;
  const asked = options.model === undefined ? job : { ...job, model: options.model };
  const place = { rootAgentId: record.agentId, storePath: options.store, isResumed: true };
  if (isUnfinished(record)) return await runJob(context, stores, jobOfQuestion(context, asked, place), options);
  return await showEnded(context, stores, endedPlace(context, record, options.store), options);
}

function sayOffline({ note }: CliContext): void {
  note("No OPENAI_API_KEY: the rule-based offline engine answers (it is no language model).");
}
