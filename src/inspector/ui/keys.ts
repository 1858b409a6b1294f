import { goLive, isHelpOpen, selectedAgent, session } from "./page-state.ts";
import { go, views } from "./route.ts";
import { focusTreeFilter } from "./tree-view.tsx";

/** Keys that work anywhere but in fields. The returned function ends it. */
export function listenToKeys(): () => void {
  document.addEventListener("keydown", act);
  return () => document.removeEventListener("keydown", act);
}

function act(event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isWriting(event.target)) return;
  if (event.key === "?") isHelpOpen.value = true;
  else if (!actOnRun(event)) return;
  event.preventDefault();
}

function actOnRun({ key, target }: KeyboardEvent): boolean {
  const run = session.peek();
  if (!run) return false;
  const view = views[Number(key) - 1];
  if (view) go({ view });
  else if (key === "/") focusTreeFilter();
  else if (key === "[") run.stepEvent(-1);
  else if (key === "]") run.stepEvent(1);
  else if (key === "{") run.stepStep(-1, selectedAgent.peek());
  else if (key === "}") run.stepStep(1, selectedAgent.peek());
  else if (key === "l" || key === "L") goLive(run);
  else if (key === " " && !isControl(target)) {
    if (run.isPlaying.peek()) run.pause();
    else run.play();
  } else return false;
  return true;
}

function isWriting(target: EventTarget | null): boolean {
  if (target instanceof HTMLInputElement) return !["checkbox", "radio", "button"].includes(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

/** Elements on which the space bar already means something. */
function isControl(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest("button, a, input, summary, [role=treegrid]") !== null;
}
