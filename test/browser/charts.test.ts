import { describe, expect, it } from "vitest";
import { type Chart, type ChartBox, type Charts, chartText, labelLines, pathOf } from "../../src/inspector/ui/chart.ts";
import charts from "../../src/inspector/ui/charts.json" with { type: "json" };
import { browserProgram, openBrowser, screenshot } from "../support/browser.ts";

const all = charts as unknown as Charts;
const { size, lineHeight, stateSize, stateLineHeight, padding } = chartText;

const browser = openBrowser();

describe.skipIf(!browserProgram).each(["agent", "turn", "toolCall"] as const)("the chart of %s", (name) => {
  it.each([
    { what: "narrow", font: "Open Sans" },
    { what: "wide", font: "DejaVu Sans" },
  ])("keeps its texts within their boxes, in a font that is $what", async ({ what, font }) => {
    const { width, height } = all[name];
    const page = await browser.newPage({ viewport: { width, height } });
    await page.setContent(`<style>body { margin: 0 } text { font-family: ${font} }</style>${svgOf(all[name])}`);
    await screenshot(page, `chart-${name}-${what}`);
    const outside = await page.evaluate(`[...document.querySelectorAll("g")].flatMap((group) => {
      const box = group.querySelector("rect").getBBox();
      return [...group.querySelectorAll("text")].filter((text) => {
        const own = text.getBBox();
        const isWithin = own.x >= box.x && own.x + own.width <= box.x + box.width;
        return !isWithin || own.y + own.height > box.y + box.height + 2 || own.height < 10;
      }).map((text) => text.textContent);
    })`);
    expect(outside).toEqual([]);
  });
});

/** A plain drawing, in which each text is as large as the charts were measured for. */
function svgOf(chart: Chart): string {
  const lines = [...chart.transitions, ...chart.beginnings].flatMap(({ line }) =>
    line ? [`<path class="line" marker-end="url(#end)" d="${pathOf(line)}"/>`] : [],
  );
  const dots = chart.beginnings.map(({ line: [x, y] }) => `<circle cx="${x}" cy="${y}" r="5"/>`);
  const style = `text { font-size: ${size}px } .name { font-size: ${stateSize}px; font-weight: bold } .note { fill: #567 }
    rect { fill: #fff; stroke: #456 } .outer { fill: #f4f6f9 } .last { fill: none } .label { stroke: none }
    .line { fill: none; stroke: #678 }`;
  const arrow = `<marker id="end" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">
    <path d="M0 0L8 4L0 8z" fill="#678"/></marker>`;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${chart.width}" height="${chart.height}"><style>${style}</style>
    <defs>${arrow}</defs>${[...statesOf(chart), ...lines, ...labelsOf(chart), ...dots].join("\n")}</svg>`;
}

function statesOf({ states }: Chart): readonly string[] {
  return states.map((state) => {
    const { path, effect, notes, x, y, width, height, isLast = false } = state;
    const isOuter = states.some((other) => other.path.startsWith(`${path}.`));
    const left = x + padding;
    const top = y + padding / 2;
    const inner = isLast ? rect({ x: x + 3, y: y + 3, width: width - 6, height: height - 6 }, "last") : "";
    const name = text(path.split(".").at(-1) ?? "", left, top + stateSize + 2, 'class="name"');
    const small = [...(effect === undefined ? [] : [effect]), ...notes].map((line, index) =>
      text(line, left, top + stateLineHeight + index * lineHeight + size, 'class="note"'),
    );
    return `<g>${rect(state, isOuter ? "outer" : "leaf")}${inner}${name}${small.join("")}</g>`;
  });
}

function labelsOf({ transitions }: Chart): readonly string[] {
  return transitions.flatMap(({ label, causes }) => {
    if (!label) return [];
    const texts = labelLines(causes).map((line, index) =>
      text(line, label.x + label.width / 2, label.y + index * lineHeight + size, 'text-anchor="middle"'),
    );
    return [`<g>${rect(label, "label")}${texts.join("")}</g>`];
  });
}

function rect({ x, y, width, height }: ChartBox, kind: string): string {
  return `<rect class="${kind}" x="${x}" y="${y}" width="${width}" height="${height}" rx="6"/>`;
}

function text(value: string, x: number, y: number, attributes: string): string {
  return `<text x="${x}" y="${y}" ${attributes}>${value.replaceAll("&", "&amp;")}</text>`;
}
