import type { Runtime } from "../../runtime/index.ts";
import { type CliContext, userName } from "../cli-context.ts";
import { offlineSpeedOf } from "./offline-speed.ts";

interface InspectionOptions {
  /** `true`: on any free port. */
  readonly inspect?: boolean | number | undefined;
  readonly stately?: boolean | undefined;
}

export interface Inspection {
  /** URL of the page; its fragment contains the token. */
  readonly url: string;
  readonly statelyUrl: string | undefined;
  watch(runtime: Runtime): void;
  close(): Promise<void>;
}

/** Serves the page on this machine only; it opens at the run, or at the list. `undefined` without the option. */
export async function startInspection(
  { inspect, stately = false }: InspectionOptions,
  run: string | undefined,
): Promise<Inspection | undefined> {
  if (inspect === undefined || inspect === false) return undefined;
  const { startInspector } = await import("../../inspector/index.ts");
  const port = inspect === true ? undefined : inspect;
  return await startInspector({ port, decide: true, by: userName(), run, allowStately: stately });
}

/** The addresses of the page and of Stately's inspector; printed once the page has content. */
export function pageLines({ url, statelyUrl }: Pick<Inspection, "url" | "statelyUrl">): string[] {
  const ofStately =
    statelyUrl === undefined ? [] : [`Stately's inspector, which receives names, ids and states: ${statelyUrl}`];
  return [`Inspect the agents at ${url}`, ...ofStately];
}

/**
 * Tokens per second of the offline engine while the page is open: a question takes 10 to 20 s, like with a language
 * model.
 */
const WATCHED_SPEED = 80;

/** The speed of the offline engine: limited while a person may watch the page. */
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

/** On a terminal, keeps the page open until Ctrl-C, so that the person can look at the ended run. */
export async function keepPage(inspector: Inspection | undefined, context: CliContext): Promise<void> {
  if (inspector === undefined || !isOnTerminal(context)) return;
  // The answer has scrolled the lines with the addresses away.
  [...pageLines(inspector), "The page stays open until Ctrl-C."].forEach(context.note);
  const { promise, resolve } = Promise.withResolvers<void>();
  process.once("SIGINT", () => resolve());
  await promise;
}
