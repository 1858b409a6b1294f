/** The methods that print; `assert` prints only when it fails. */
const methods = ["log", "info", "warn", "error", "debug", "trace", "dir", "table", "assert"] as const;

type PrintingConsole = Pick<Console, (typeof methods)[number]>;

export interface ConsoleRecorder {
  /** Returns the output since the last call, one line per call, and removes it. */
  take(): readonly string[];
  /** Restores the console's own methods. */
  restore(): void;
}

/** Replaces the printing methods of a console: the output of a test is recorded and not printed. */
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
