import { effect, signal } from "@preact/signals";

export const themes = ["system", "light", "dark"] as const;
export type Theme = (typeof themes)[number];

/** A setting stored in this browser. In a file, or with storage turned off, it lasts as long as the page. */
function remembered<Value extends string>(key: string, first: Value, isValue: (text: string) => text is Value) {
  let known: string | null = null;
  try {
    known = localStorage.getItem(key);
  } catch {
    // Storage is turned off.
  }
  const setting = signal<Value>(known !== null && isValue(known) ? known : first);
  let isFirst = true;
  effect(() => {
    const { value } = setting;
    if (isFirst) isFirst = false;
    else keep(key, value);
  });
  return setting;
}

function keep(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // Storage is turned off.
  }
}

export const theme = remembered<Theme>("troupe.theme", "system", (text): text is Theme =>
  (themes as readonly string[]).includes(text),
);
/** Width of the tree in pixels. */
export const treeWidth = remembered("troupe.tree", "344", (text): text is string => /^\d{3}$/.test(text));

/** The current theme; follows the system's theme. */
export const shownTheme = signal<"light" | "dark">("light");

export function startTheme(): void {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const systemIsDark = signal(dark.matches);
  dark.addEventListener("change", ({ matches }) => {
    systemIsDark.value = matches;
  });
  effect(() => {
    const system = systemIsDark.value ? "dark" : "light";
    const shown = theme.value === "system" ? system : theme.value;
    document.documentElement.dataset["theme"] = shown;
    shownTheme.value = shown;
  });
}

const colours = new Map<string, string>();
effect(() => {
  if (shownTheme.value) colours.clear();
});

/** A colour of the theme, for a canvas. Cached, because reading one makes the browser compute all styles. */
export function colour(name: string): string {
  const known = colours.get(name);
  if (known !== undefined) return known;
  const read = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  colours.set(name, read);
  return read;
}
