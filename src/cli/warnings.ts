import { oneLine } from "./view/text-width.ts";

/** What the command needs of a process to tell its warnings. */
export interface WarningSource {
  listeners(event: "warning"): readonly ((warning: Error) => void)[];
  removeAllListeners(event: "warning"): unknown;
  on(event: "warning", listener: (warning: Error) => void): unknown;
}

/** For so long the same warning is not told again; milliseconds. */
const silenceMs = 60_000;

/**
 * Tells warnings as one line each, and not over and over: a store that is away is met by all who work. Those that Node or a
 * package gives a kind or a code of their own are left to Node and its options. `now` in milliseconds, of any origin.
 */
export function tellWarnings(source: WarningSource, note: (line: string) => void, now: () => number): void {
  const others = source.listeners("warning");
  const toldAt = new Map<string, number>();
  source.removeAllListeners("warning");
  source.on("warning", (warning) => {
    if (!isPlain(warning)) {
      for (const listener of others) listener.call(source, warning);
      return;
    }
    const line = `troupe: warning: ${oneLine(warning.message)}`;
    const last = toldAt.get(line);
    if (last !== undefined && now() - last < silenceMs) return;
    toldAt.set(line, now());
    note(line);
  });
}

function isPlain(warning: Error): boolean {
  const code = "code" in warning ? warning.code : undefined;
  return warning.name === "Warning" && (code === undefined || (typeof code === "string" && code.startsWith("TROUPE_")));
}
