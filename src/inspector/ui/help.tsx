import { useEffect, useRef } from "preact/hooks";
import { isHelpOpen } from "./page-state.ts";

const keys: readonly (readonly [keys: readonly string[], what: string])[] = [
  [["/"], "Filter the agents"],
  [["Arrows"], "Move, open and close in the tree"],
  [["Enter"], "Select the agent"],
  [["[", "]"], "Previous and next event"],
  [["{", "}"], "Previous and next model call of the selected agent"],
  [["Space"], "Play and pause"],
  [["L"], "Follow the newest"],
  [["1", "…", "7"], "Timeline, chart, messages, events, budgets, requests, talk"],
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
      <p class="quiet">No key alone approves or aborts anything.</p>
      <form method="dialog">
        <button>Close</button>
      </form>
    </dialog>
  );
}
