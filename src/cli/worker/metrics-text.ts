/** A number as Prometheus takes it, or several that differ in their labels. */
export interface Metric {
  /** Letters, digits and `_`; counters end with `_total`. */
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge";
  readonly samples: readonly MetricSample[];
}

export interface MetricSample {
  readonly labels?: Readonly<Record<string, string>>;
  /** Null: not known just now; then there is no such line. */
  readonly value: number | null;
}

/** What the answer says it is. */
export const metricsContentType = "text/plain; version=0.0.4; charset=utf-8";

/** The text format of Prometheus, version 0.0.4. */
export function metricsText(metrics: readonly Metric[]): string {
  const lines = metrics.flatMap(({ name, help, type, samples }) => {
    const known = samples.flatMap((sample) => lineOf(name, sample));
    if (known.length === 0) return [];
    return [
      `# HELP ${name} ${help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")}`,
      `# TYPE ${name} ${type}`,
      ...known,
    ];
  });
  return `${lines.join("\n")}\n`;
}

function lineOf(name: string, { labels = {}, value }: MetricSample): string[] {
  if (value === null) return [];
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escaped(text)}"`);
  return [`${name}${pairs.length === 0 ? "" : `{${pairs.join(",")}}`} ${numberText(value)}`];
}

function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

function numberText(value: number): string {
  if (Number.isFinite(value)) return String(value);
  return Number.isNaN(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
}
