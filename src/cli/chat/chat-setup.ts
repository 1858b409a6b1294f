import type { Runtime } from "../../runtime/index.ts";
import type { CliContext } from "../cli-context.ts";
import type { Job } from "../job/job.ts";

export interface ChatSetup {
  readonly context: CliContext;
  readonly runtime: Runtime;
  readonly job: Job;
  /** Whether the agent is there already. */
  readonly isKnown: boolean;
  /** Command line that carries this conversation on. */
  readonly comeBack: string;
  /** Ctrl-C as a key. */
  readonly onInterrupt: () => void;
  /** A line was typed. */
  readonly onTyped: () => void;
}
