import { runProcess } from "../processes.ts";

/** One process of the main job: `troupe ask`, offline. */
export interface JobFiles {
  readonly store: string;
  readonly files: string;
  readonly question: string;
}

export interface JobRun {
  /** It came to its end by itself. */
  readonly ended: boolean;
  readonly exitCode: number | null;
  /** What it printed on standard output: the answer. */
  readonly answer: string;
  readonly stderr: string;
  /** Milliseconds since the epoch. */
  readonly begunAt: number;
  readonly milliseconds: number;
}

const JOB_LIMIT_MS = 120_000;
/** A model that answers at this many tokens a second makes a job long enough to be hit in the middle. */
const OFFLINE_SPEED = "1500";

/** No key and no fault point: what is inherited must not change what is tried. */
const environment = { OPENAI_API_KEY: "", OPENAI_BASE_URL: "", TROUPE_FAULT: "", TROUPE_OFFLINE_SPEED: OFFLINE_SPEED };

export async function ask({ store, files, question }: JobFiles, killAfterMs?: number): Promise<JobRun> {
  return await runJob(["ask", "--question", question, "--files", files, "--store", store, "--quiet"], killAfterMs);
}

export async function resume({ store }: JobFiles, killAfterMs?: number): Promise<JobRun> {
  return await runJob(["ask", "--resume", "--store", store, "--quiet"], killAfterMs);
}

async function runJob(words: readonly string[], killAfterMs: number | undefined): Promise<JobRun> {
  const begunAt = Date.now();
  const end = await runProcess("../src/cli/main.ts", words, { environment, limitMs: JOB_LIMIT_MS, killAfterMs });
  const { exitCode, signal, stdout, milliseconds } = end;
  const stderr = end.timedOut ? `${end.stderr}still running after ${JOB_LIMIT_MS / 1000} s` : end.stderr;
  return { ended: signal === null && !end.timedOut, exitCode, answer: stdout, stderr, begunAt, milliseconds };
}
