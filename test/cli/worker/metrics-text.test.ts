import { expect, test } from "vitest";
import { metricsText } from "../../../src/cli/worker/worker-metrics.ts";

test("metrics are in the text format of Prometheus", () => {
  const text = metricsText([
    { name: "a_total", help: "How often a.", type: "counter", samples: [{ value: 3 }] },
    {
      name: "jobs",
      help: "Jobs of a queue.",
      type: "gauge",
      samples: [
        { labels: { queue: "mail", state: "waiting" }, value: 0 },
        { labels: { queue: 'odd"\\\n', state: "waiting" }, value: 1.5 },
      ],
    },
  ]);
  expect(text).toBe(`# HELP a_total How often a.
# TYPE a_total counter
a_total 3
# HELP jobs Jobs of a queue.
# TYPE jobs gauge
jobs{queue="mail",state="waiting"} 0
jobs{queue="odd\\"\\\\\\n",state="waiting"} 1.5
`);
});

test("an unknown value is left out, with its help", () => {
  const help = "It.";
  const text = metricsText([
    { name: "gone", help, type: "gauge", samples: [{ value: null }] },
    {
      name: "partly",
      help,
      type: "gauge",
      samples: [
        { labels: { of: "a" }, value: null },
        { labels: { of: "b" }, value: 1 },
      ],
    },
    { name: "odd", help, type: "gauge", samples: [{ value: Number.NaN }, { labels: { of: "b" }, value: Infinity }] },
  ]);
  expect(text).not.toContain("gone");
  expect(text.match(/^partly.*$/gm)).toEqual(['partly{of="b"} 1']);
  expect(text.match(/^odd.*$/gm)).toEqual(["odd NaN", 'odd{of="b"} +Inf']);
});
