import { runProcess } from "../processes.ts";

/** One process of the main job: `troupe ask`, offline. */
export interface JobFiles {
  readonly store: string;
  readonly files: string;
  readonly question: string;
}

export interface JobRun {
  /** Whether it exited by itself. */
  readonly ended: boolean;
  readonly exitCode: number | null;
  /** Its standard output: the answer. */
  readonly answer: string;
  readonly stderr: string;
  /** Milliseconds since the epoch. */
  readonly begunAt: number;
  readonly milliseconds: number;
}

const JOB_LIMIT_MS = 120_000;
/** Tokens per second of the model, so slow that the job can be killed during its work. */
const OFFLINE_SPEED = "1500";

/** Removes keys and fault points, so that the inherited environment does not change the job. */
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
