import type { Runtime } from "../../runtime/index.ts";
import { type CliContext, userName } from "../cli-context.ts";
import { offlineSpeedOf } from "./offline-speed.ts";

interface InspectionOptions {
  /** `true`: on any port that is free. */
  readonly inspect?: boolean | number | undefined;
  readonly stately?: boolean | undefined;
}

export interface Inspection {
  /** The page; its fragment holds the token. */
  readonly url: string;
  readonly statelyUrl: string | undefined;
  watch(runtime: Runtime): void;
  close(): Promise<void>;
}

/** Serves the page on this machine only; it opens at the run, or at the list. Undefined without the option. */
export async function startInspection(
  { inspect, stately = false }: InspectionOptions,
  run: string | undefined,
): Promise<Inspection | undefined> {
  if (inspect === undefined || inspect === false) return undefined;
  const { startInspector } = await import("../../inspector/index.ts");
  const port = inspect === true ? undefined : inspect;
  return await startInspector({ port, decide: true, by: userName(), run, allowStately: stately });
}

/** The addresses of the page and of Stately's; to be printed once there is something to see on it. */
export function pageLines({ url, statelyUrl }: Pick<Inspection, "url" | "statelyUrl">): string[] {
  const ofStately =
    statelyUrl === undefined ? [] : [`Stately's inspector, which gets names, ids and states: ${statelyUrl}`];
  return [`Inspect the agents at ${url}`, ...ofStately];
}

/** Tokens a second of the offline engine while one looks on: a question takes 10 to 20 s, as with a language model. */
const WATCHED_SPEED = 80;

/** The pace of the offline engine: it takes its time where a person may look on at a page. */
export function watchedSpeed(
  context: Pick<CliContext, "environment" | "stdin" | "stdout">,
  wanted: InspectionOptions["inspect"],
): number | undefined {
  const isWatched = wanted !== undefined && wanted !== false && isOnTerminal(context);
  return offlineSpeedOf(context.environment) ?? (isWatched ? WATCHED_SPEED : undefined);
}

function isOnTerminal({ stdin, stdout }: Pick<CliContext, "stdin" | "stdout">): boolean {
  return stdin.isTTY && stdout.isTTY;
}

/** On a terminal the page stays until Ctrl-C, because what has just ended is what one wants to look at. */
export async function keepPage(inspector: Inspection | undefined, context: CliContext): Promise<void> {
  if (inspector === undefined || !isOnTerminal(context)) return;
  // The lines with the addresses have scrolled away behind the answer.
  [...pageLines(inspector), "The page stays until Ctrl-C."].forEach(context.note);
  const { promise, resolve } = Promise.withResolvers<void>();
  process.once("SIGINT", () => resolve());
  await promise;
}
