import { effect } from "@preact/signals";
import { session } from "./page-state.ts";
import { oneLine } from "./untrusted.tsx";

/** Sets the page title to the run's name with its number of open requests, and marks the icon with a dot. */
export function startTitle(): void {
  const icon = document.createElement("link");
  icon.rel = "icon";
  document.head.append(icon);
  effect(() => {
    const run = session.value;
    const open = run?.requests.value.filter(({ status }) => status === "open").length ?? 0;
    const root = run && run.length.value > 0 ? run.log.agents[0] : undefined;
    const name = root ? `${oneLine(root.name, 40)} · troupe` : "troupe";
    document.title = open > 0 ? `(${open}) ${name}` : name;
    icon.href = iconWith(open > 0);
  });
}

function iconWith(hasDot: boolean): string {
  const dot = hasDot ? '<circle cx="24" cy="8" r="8" fill="#d1208c"/>' : "";
  const picture = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><circle cx="14" cy="18" r="12" fill="#3a4fd0"/>${dot}</svg>`;
  return `data:image/svg+xml,${encodeURIComponent(picture)}`;
}
