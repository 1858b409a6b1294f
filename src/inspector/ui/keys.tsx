import { useEffect, useRef } from "preact/hooks";
import { go, goLive, isHelpOpen, say, selectAgent, selectedAgent, session, views } from "./page-state.ts";
import { showNextRequest } from "./requests-view.tsx";
import type { RunSession } from "./run-session.ts";
import { focusTreeFilter } from "./tree-view.tsx";

/** Installs the keys that work everywhere except in fields. The returned function removes them. */
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
  else if (key === "[") run.player.stepEvent(-1);
  else if (key === "]") run.player.stepEvent(1);
  else if (key === "{") run.player.stepStep(-1, selectedAgent.peek());
  else if (key === "}") run.player.stepStep(1, selectedAgent.peek());
  else if (key === "e" || key === "E") showNextFailure(run);
  else if (key === "a" || key === "A") showNextRequest(run);
  else if (key === "l" || key === "L") goLive(run);
  else if (key === " " && !isControl(target)) {
    if (run.player.isPlaying.peek()) run.player.pause();
    else run.player.play();
  } else return false;
  return true;
}

function showNextFailure(run: RunSession): void {
  const place = run.player.stepFailure();
  const agent = run.log.agents[run.log.agentOf(place)];
  if (place < 0 || !agent) say("Nothing has failed");
  else selectAgent(agent.agentId);
}

function isWriting(target: EventTarget | null): boolean {
  if (target instanceof HTMLInputElement) return !["checkbox", "radio", "button"].includes(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

/** Elements that use the space bar themselves. */
function isControl(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest("button, a, input, summary, [role=treegrid]") !== null;
}

const keys: readonly (readonly [keys: readonly string[], what: string])[] = [
  [["/"], "Filter the agents"],
  [["Arrows"], "Move, open and close in the tree"],
  [["Enter"], "Select the agent"],
  [["[", "]"], "Previous and next event"],
  [["{", "}"], "Previous and next model call of the selected agent"],
  [["E"], "Next failure"],
  [["A"], "Next request that waits for a decision; Enter approves after a confirmation, Escape calls it off"],
  [["Space"], "Play and pause"],
  [["L"], "Follow the newest"],
  [["1", "…", "9"], "Summary, timeline, chart, messages, events, budgets, requests, talk, forks"],
  [["+", "-", "0"], "Zoom the timeline or the chart"],
  [["?"], "These keys"],
];

export function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  const isOpen = isHelpOpen.value;
  useEffect(() => {
    const { current } = dialog;
    if (isOpen && current?.open === false) current.showModal();
    if (!isOpen && current?.open === true) current.close();
  }, [isOpen]);
  return (
    <dialog
      ref={dialog}
      class="help"
      aria-label="Keys"
      onClose={() => {
        isHelpOpen.value = false;
      }}
      onClick={(event) => {
        if (event.target === event.currentTarget) isHelpOpen.value = false;
      }}
    >
      <h2>Keys</h2>
      <dl>
        {keys.map(([names, what]) => (
          <div key={what}>
            <dt>{names.map((name) => (name === "…" ? " … " : <kbd key={name}>{name}</kbd>))}</dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <p class="quiet">No single key approves or aborts anything.</p>
      <form method="dialog">
        <button>Close</button>
      </form>
    </dialog>
  );
}
