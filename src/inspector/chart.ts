const charts = new WeakMap<object, string>();

/** The chart of a machine, or just the name of an effect, as JSON text; made once for each. */
export function chartOf(logic: unknown, name: string): string {
  const config = configOf(logic);
  if (config === undefined) return JSON.stringify({ id: name });
  const known = charts.get(config);
  if (known !== undefined) return known;
  const chart = JSON.stringify(config, withoutCode);
  charts.set(config, chart);
  return chart;
}

/** A machine has a chart; an effect has none. */
export function isMachine(logic: unknown): boolean {
  return configOf(logic) !== undefined;
}

function configOf(logic: unknown): object | undefined {
  if (typeof logic !== "object" || logic === null || !("config" in logic)) return undefined;
  return typeof logic.config === "object" && logic.config !== null ? logic.config : undefined;
}

/** Code is shown by its name; the first context is none of the chart's business. */
function withoutCode(this: unknown, key: string, value: unknown): unknown {
  if (key === "context") return undefined;
  return typeof value === "function" ? { type: value.name === "" ? "inline" : value.name } : value;
}
