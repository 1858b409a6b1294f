import type { WrittenCall } from "./run-session.ts";
import { oneLine, plainText } from "./untrusted.tsx";

/** Characters shown of the arguments: their end, where the model is writing. */
const MOST_SHOWN = 400;

/** The tool calls that a model is writing. */
export function WrittenCalls({ calls }: { readonly calls: readonly WrittenCall[] }) {
  return (
    <ul class="written-calls">
      {calls.map(({ index, name, text }) => (
        <li key={index}>
          <b>{oneLine(name, 60)}</b>{" "}
          <code>{plainText(text.length > MOST_SHOWN ? `…${text.slice(-MOST_SHOWN)}` : text)}</code>
        </li>
      ))}
    </ul>
  );
}
