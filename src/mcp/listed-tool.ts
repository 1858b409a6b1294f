/** A tool as its server lists it, unchecked but for the name. */
export interface ListedTool {
  readonly name: string;
  readonly description?: unknown;
  readonly inputSchema?: unknown;
  readonly annotations?: unknown;
  readonly execution?: unknown;
}
