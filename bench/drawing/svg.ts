/** Builds SVG as text. Colours are classes of one style sheet with a light and a dark theme. */

/** An element; `text` is its text content. Attributes are escaped, `undefined` ones left out. */
export function element(
  name: string,
  attributes: Readonly<Record<string, string | number | undefined>>,
  children: readonly string[] = [],
): string {
  const written = Object.entries(attributes)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => ` ${key}="${escape(typeof value === "number" ? rounded(value) : (value ?? ""))}"`)
    .join("");
  return children.length === 0 ? `<${name}${written}/>` : `<${name}${written}>${children.join("")}</${name}>`;
}

export interface TextPlace {
  readonly x: number;
  readonly y: number;
  readonly class?: string;
  readonly anchor?: "middle" | "end";
  /** Degrees of rotation around its position. */
  readonly turned?: number;
}

export function textAt(text: string, { x, y, class: name, anchor, turned }: TextPlace): string {
  const transform = turned === undefined ? undefined : `rotate(${turned} ${rounded(x)} ${rounded(y)})`;
  return element("text", { x, y, class: name, "text-anchor": anchor, transform }, [escape(text)]);
}

export interface Drawing {
  readonly width: number;
  readonly height: number;
  /** Description for screen readers. */
  readonly title: string;
  readonly children: readonly string[];
}

/** A complete picture with its own background, because the surrounding page may not follow the reader's theme. */
export function picture({ width, height, title, children }: Drawing): string {
  const attributes = {
    xmlns: "http://www.w3.org/2000/svg",
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    "aria-label": title,
  };
  const ground = element("rect", { width, height, class: "ground" });
  const lines = [element("title", {}, [escape(title)]), `<style>${style}</style>`, ground, ...children];
  return `${element("svg", attributes, ["\n", lines.join("\n"), "\n"])}\n`;
}

/** Name of the contender that the bar or curve shows. */
export type Colour = "bare" | "memory" | "sqlite" | "peer";

const colours: Readonly<Record<Colour | "ground" | "ink" | "faint" | "grid", readonly [light: string, dark: string]>> =
  {
    ground: ["#ffffff", "#0d1117"],
    ink: ["#1f2328", "#e6edf3"],
    faint: ["#59636e", "#9198a1"],
    grid: ["#d1d9e0", "#3d444d"],
    bare: ["#6e7781", "#9198a1"],
    memory: ["#0969da", "#4493f8"],
    sqlite: ["#1a7f37", "#3fb950"],
    peer: ["#bc4c00", "#db6d28"],
  };

function rulesOf(scheme: 0 | 1): string {
  const colour = (name: keyof typeof colours): string => colours[name][scheme];
  const owners = (["bare", "memory", "sqlite", "peer"] as const).map(
    (name) => `.${name}{fill:${colour(name)};stroke:${colour(name)}}`,
  );
  return [
    `.ground{fill:${colour("ground")}}text{fill:${colour("ink")}}.faint{fill:${colour("faint")}}`,
    `.grid{stroke:${colour("grid")}}`,
    ...owners,
  ].join("");
}

const style = [
  "text{font:12px system-ui,sans-serif}.heading{font-weight:600;font-size:13px}.small{font-size:11px}",
  "rect.bar{stroke:none}polyline.curve{fill:none;stroke-width:2}.dashed{stroke-dasharray:3 3}text.bare,text.memory,text.sqlite,text.peer{stroke:none}",
  rulesOf(0),
  `@media (prefers-color-scheme:dark){${rulesOf(1)}}`,
].join("");

function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

function rounded(value: number): string {
  return String(Number(value.toFixed(1)));
}

/** Formats a number with three significant digits and thousands separators. */
export function figure(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString("en-US") : String(Number(value.toPrecision(3)));
}

/** Axis ticks from 0 to at least the largest value: at most five steps of 1, 2 or 5 times a power of ten. */
export function ticksTo(largest: number): readonly number[] {
  const rough = Math.max(largest, Number.MIN_VALUE) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10) * power;
  return Array.from({ length: Math.ceil(largest / step - 1e-9) + 1 }, (_, index) => index * step);
}
