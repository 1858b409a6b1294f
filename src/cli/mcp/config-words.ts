import type { McpServerReport } from "../../mcp/index.ts";
import { type CliContext, commandLine } from "../cli-context.ts";

/** The options that name the file with the servers, and the lock file. */
export interface McpConfigWords {
  readonly config?: string | undefined;
  readonly lock?: string | undefined;
}

const usualConfig = "mcp.json";

/** The file with the servers. */
export function configFile({ config = usualConfig }: McpConfigWords): string {
  return config;
}

/** Prints the command that writes the differences to the lock file. */
export function warnOfUnpinned(
  { invocation, note }: CliContext,
  { config, lock }: McpConfigWords,
  reports: readonly McpServerReport[],
): void {
  const differing = reports.filter((report) => report.error === undefined && report.lock !== null && !report.isPinned);
  if (differing.length === 0) return;
  const words = [
    "pin",
    ...differing.map(({ server }) => server),
    ...(config === undefined ? [] : ["--config", config]),
    ...(lock === undefined ? [] : ["--lock", lock]),
  ];
  note(`To accept these definitions: ${commandLine(invocation, "mcp", words)}`);
}
