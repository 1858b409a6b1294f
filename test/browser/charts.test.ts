import { describe, expect, it } from "vitest";
import {
  type Chart,
  type ChartBox,
  type ChartLayout,
  type Charts,
  chartText,
  labelLines,
  nameLines,
  pathOf,
  textLines,
} from "../../src/inspector/ui/chart.ts";
import charts from "../../src/inspector/ui/charts.json" with { type: "json" };
import { browserProgram, openBrowser, screenshot } from "../support/browser.ts";

const all = charts as unknown as Charts;
const { size, lineHeight, stateSize, stateLineHeight, padding } = chartText;

const browser = openBrowser();

const drawings = (["agent", "turn", "toolCall"] as const).flatMap((name) =>
  all[name].layouts.map((layout, index) => ({ name: `${name}-${index}`, chart: all[name], layout })),
);

describe.skipIf(!browserProgram).each(drawings)("the chart of $name", ({ name, chart, layout }) => {
  it.each([
    { what: "narrow", font: "Open Sans" },
    { what: "wide", font: "DejaVu Sans" },
  ])("keeps its texts within their boxes, in a font that is $what", async ({ what, font }) => {
    const { width, height } = layout;
    const page = await browser.newPage({ viewport: { width, height } });
    await page.setContent(`<style>body { margin: 0 } text { font-family: ${font} }</style>${svgOf(chart, layout)}`);
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

/** A plain drawing, with each text in the size that the charts were measured for. */
function svgOf(chart: Chart, layout: ChartLayout): string {
  const lines = [...layout.lines, ...layout.dots]
    .filter((line) => line.length > 0)
    .map((line) => `<path class="line" marker-end="url(#end)" d="${pathOf(line)}"/>`);
  const dots = layout.dots.map(([x, y]) => `<circle cx="${x}" cy="${y}" r="5"/>`);
  const style = `text { font-size: ${size}px } .name { font-size: ${stateSize}px; font-weight: bold } .note { fill: #567 }
    rect { fill: #fff; stroke: #456 } .outer { fill: #f4f6f9 } .last { fill: none } .label { stroke: none }
    .line { fill: none; stroke: #678 }`;
  const arrow = `<marker id="end" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">
    <path d="M0 0L8 4L0 8z" fill="#678"/></marker>`;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${layout.width}" height="${layout.height}"><style>${style}</style>
    <defs>${arrow}</defs>${[...statesOf(chart, layout), ...lines, ...labelsOf(chart, layout), ...dots].join("\n")}</svg>`;
}

function statesOf({ states }: Chart, { boxes, isNear }: ChartLayout): readonly string[] {
  return states.map((state, at) => {
    const { path, isLast = false } = state;
    const box = boxes[at] ?? [0, 0, 0, 0];
    const [x, y, width, height] = box;
    const isOuter = states.some((other) => other.path.startsWith(`${path}.`));
    const gap = padding[isNear ? "near" : "far"];
    const [left, top] = [x + gap, y + gap / 2];
    const inner = isLast ? rect([x + 3, y + 3, width - 6, height - 6], "last") : "";
    const names = nameLines(path, isNear);
    const nameTexts = names.map((line, index) =>
      text(line, left, top + stateSize + 2 + index * lineHeight, 'class="name"'),
    );
    const below = top + stateLineHeight + (names.length - 1) * lineHeight;
    const small = (isNear ? textLines(state) : []).map((line, index) =>
      text(line, left, below + index * lineHeight + size, 'class="note"'),
    );
    return `<g>${rect(box, isOuter ? "outer" : "leaf")}${inner}${[...nameTexts, ...small].join("")}</g>`;
  });
}

function labelsOf({ transitions }: Chart, { labels }: ChartLayout): readonly string[] {
  return labels.flatMap((label, at) => {
    if (!label) return [];
    const [x, y, width] = label;
    const texts = labelLines(transitions[at]?.causes ?? []).map((line, index) =>
      text(line, x + width / 2, y + index * lineHeight + size, 'text-anchor="middle"'),
    );
    return [`<g>${rect(label, "label")}${texts.join("")}</g>`];
  });
}

function rect([x, y, width, height]: ChartBox, kind: string): string {
  return `<rect class="${kind}" x="${x}" y="${y}" width="${width}" height="${height}" rx="6"/>`;
}

function text(value: string, x: number, y: number, attributes: string): string {
  return `<text x="${x}" y="${y}" ${attributes}>${value.replaceAll("&", "&amp;")}</text>`;
}
