import type { Runtime } from "../../runtime/index.ts";
import { type CliContext, userName } from "../cli-context.ts";

/** `true`: on any port that is free. */
type InspectOption = boolean | number | undefined;

export interface Inspection {
  /** The page; its fragment holds the token. */
  readonly url: string;
  watch(runtime: Runtime): void;
  close(): Promise<void>;
}

/** Serves the page on this machine only; it opens at the run, or at the list. Undefined without the option. */
export async function startInspection(wanted: InspectOption, run: string | undefined): Promise<Inspection | undefined> {
  if (wanted === undefined || wanted === false) return undefined;
  const { startInspector } = await import("../../inspector/index.ts");
  const port = wanted === true ? undefined : wanted;
  return await startInspector({ port, decide: true, by: userName(), run });
}

/** Prints the address of the page; only once there is something to see on it. */
export function tellPage(inspector: Inspection | undefined, { note }: Pick<CliContext, "note">): void {
  if (inspector) note(`Inspect the agents at ${inspector.url}`);
}

/** On a terminal the page stays until Ctrl-C, because what has just ended is what one wants to look at. */
export async function keepPage(inspector: Inspection | undefined, { stdin, stdout, note }: CliContext): Promise<void> {
  if (inspector === undefined || !stdin.isTTY || !stdout.isTTY) return;
  note("The page stays until Ctrl-C.");
  const { promise, resolve } = Promise.withResolvers<void>();
  process.once("SIGINT", () => resolve());
  await promise;
}
