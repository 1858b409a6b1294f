/** The methods that print; `assert` prints only when it fails. */
const methods = ["log", "info", "warn", "error", "debug", "trace", "dir", "table", "assert"] as const;

type PrintingConsole = Pick<Console, (typeof methods)[number]>;

export interface ConsoleRecorder {
  /** What was printed since the last time, one line a call; forgets it. */
  take(): readonly string[];
  /** Puts the console's own methods back. */
  restore(): void;
}

/** Takes the place of the printing methods of a console: what a test prints is recorded and not shown. */
export function recordConsole(target: PrintingConsole): ConsoleRecorder {
  let printed: string[] = [];
  const own = methods.map((method) => [method, target[method]] as const);
  for (const method of methods) {
    const record = (...values: unknown[]): void => {
      if (method === "assert" && Boolean(values[0])) return;
      printed.push(`console.${method}: ${values.map(String).join(" ")}`);
    };
    Object.assign(target, { [method]: record });
  }
  return {
    take: () => {
      const taken = printed;
      printed = [];
      return taken;
    },
    restore: () => {
      Object.assign(target, Object.fromEntries(own));
    },
  };
}
