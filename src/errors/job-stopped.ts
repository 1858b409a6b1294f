import { TerminalError } from "./troupe-error.ts";

/** `cancelled`: somebody asked for it. `timed_out`: it took longer than it may. `drained`: its worker leaves. */
export type JobStop = "cancelled" | "timed_out" | "drained";

/** The reason with which a queued job's signal is aborted. */
export class JobStoppedError extends TerminalError {
  readonly code = "job_stopped";
  readonly why: JobStop;

  constructor(why: JobStop, message: string) {
    super(message, { details: { why } });
    this.why = why;
  }
}
