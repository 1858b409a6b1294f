import { signal } from "@preact/signals";
import { useId, useRef, useState } from "preact/hooks";
import type { ForkBody, Prompt, RunForkPoint } from "../feed/wire.ts";
import { useAsked } from "./asked.ts";
import { errorText } from "./feed-client.ts";
import { addressOfPoint } from "./fork-point.tsx";
import { callNameOf, callNamesIn } from "./message-card.tsx";
import { acts, go, info } from "./page-state.ts";
import type { RunSession } from "./run-session.ts";
import { oneLine, plainText } from "./untrusted.tsx";

/** Changed fields by run, point and field. They outlive the form, so that switching views loses nothing. */
const drafts = signal<ReadonlyMap<string, ReadonlyMap<string, string>>>(new Map());
const noChanges: ReadonlyMap<string, string> = new Map();

/** A text of the past that a fork can change. */
interface PastText {
  readonly name: string;
  readonly label: string;
  readonly text: string;
  readonly isResult: boolean;
}

interface FormProps {
  readonly run: RunSession;
  readonly point: RunForkPoint;
  readonly models: readonly string[];
}

/** The form of a fork: changes to the past, what is added, and its limits. */
export function ForkForm({ run, point, models }: FormProps) {
  const { answer, failure } = useAsked(
    async () => (point.seq === null ? null : await run.client.prompt(run.runId, run.runId, point.seq)),
    { subject: `${run.runId} ${addressOfPoint(point)}`, on: [] },
  );
  const [error, setError] = useState<string | null>(null);
  const [isSending, setSending] = useState(false);
  const key = useRef<string>(crypto.randomUUID());
  if (answer === undefined && failure === null) return <p class="quiet loading">Reading the step …</p>;
  const subject = `${run.runId} ${addressOfPoint(point)}`;
  const changes = drafts.value.get(subject) ?? noChanges;
  const change = (name: string, text: string | undefined): void => {
    const next = new Map(changes);
    if (text === undefined) next.delete(name);
    else next.set(name, text);
    drafts.value = new Map(drafts.peek()).set(subject, next);
  };
  const texts = answer ? pastTexts(answer, point) : [];
  const broken = texts.some((past) => faultOf(past, changes.get(past.name)) !== null);
  const submit = async (): Promise<void> => {
    const act = acts.peek();
    if (!act || isSending || broken) return;
    setSending(true);
    setError(null);
    try {
      const { runId } = await act.fork(run.runId, bodyOf(point, changes, key.current));
      drafts.value = new Map([...drafts.peek()].filter(([one]) => one !== subject));
      go({ page: "compare", runId: run.runId, otherId: runId });
    } catch (thrown) {
      setError(errorText(thrown));
      setSending(false);
    }
  };
  const field = (name: string, label: string, type: "number" | "text" = "text") => (
    <label class="fork-field">
      <span>{label}</span>
      {type === "number" ? (
        <input
          type="number"
          min={0}
          step="any"
          value={changes.get(name) ?? ""}
          onInput={({ currentTarget: { value } }) => change(name, value === "" ? undefined : value)}
        />
      ) : (
        <textarea
          rows={2}
          value={changes.get(name) ?? ""}
          onInput={({ currentTarget: { value } }) => change(name, value === "" ? undefined : value)}
        />
      )}
    </label>
  );
  return (
    <form
      class="fork-form"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      {failure !== null && <p class="note">{plainText(failure)}</p>}
      {info.value?.namesOnly === true && <p class="note">Contents are not shown here, so they cannot be edited.</p>}
      {models.length > 0 && (
        <label class="fork-field">
          <span>Model of the root agent</span>
          <select
            value={changes.get("model") ?? ""}
            onChange={({ currentTarget: { value } }) => change("model", value === "" ? undefined : value)}
          >
            <option value="">as defined</option>
            {models.map((name) => (
              <option key={name} value={name}>
                {oneLine(name, 60)}
              </option>
            ))}
          </select>
        </label>
      )}
      {texts.map((past) => (
        <TextField
          key={past.name}
          past={past}
          value={changes.get(past.name)}
          onChange={(text) => change(past.name, text)}
        />
      ))}
      {point.step !== 1 && field("input", point.step === null ? "Input of the next turn" : "Message to add here")}
      <fieldset class="fork-budget">
        <legend>Limits of the turn, each instead of the origin's</legend>
        {field("maxSteps", "Steps", "number")}
        {field("maxTokens", "Tokens", "number")}
        {field("maxCost", "Dollars", "number")}
        {field("maxSeconds", "Seconds", "number")}
      </fieldset>
      <p class="quiet">
        The fork is a run of its own and costs tokens. Tools with an effect outside do not run: they get the recorded
        result of an equal call, or an error that the model can read.
      </p>
      <p class="choices">
        <button class="primary" disabled={isSending || broken}>
          {isSending ? "Starting …" : "Run the fork"}
        </button>
        {changes.size > 0 && (
          <button type="button" onClick={() => (drafts.value = new Map(drafts.peek()).set(subject, noChanges))}>
            Undo all changes
          </button>
        )}
      </p>
      {error !== null && (
        <p class="note bad" role="alert">
          {plainText(error)}
        </p>
      )}
    </form>
  );
}

interface TextProps {
  readonly past: PastText;
  /** `undefined` if it is not changed. */
  readonly value: string | undefined;
  readonly onChange: (text: string | undefined) => void;
}

const MOST_ROWS = 8;

function TextField({ past, value, onChange }: TextProps) {
  const { label, text } = past;
  const id = useId();
  const fault = faultOf(past, value);
  const shown = value ?? text;
  return (
    <label class="fork-field">
      <span>
        {label} {value !== undefined && <span class="tag">changed</span>}
      </span>
      <textarea
        rows={Math.min(MOST_ROWS, Math.max(2, shown.split("\n").length, Math.ceil(shown.length / 90)))}
        value={shown}
        spellcheck={false}
        aria-invalid={fault !== null}
        aria-describedby={fault === null ? undefined : id}
        onInput={({ currentTarget }) => onChange(currentTarget.value === text ? undefined : currentTarget.value)}
      />
      {fault !== null && (
        <span id={id} class="bad" role="alert">
          {plainText(fault)}
        </span>
      )}
    </label>
  );
}

/** The texts before the step that the model read: instructions, the turn's input, results of tools. */
function pastTexts({ messages }: Prompt, { inputId }: RunForkPoint): PastText[] {
  const names = callNamesIn(messages);
  return messages.flatMap((message, index): PastText[] => {
    const { content: text } = message;
    if (typeof text !== "string" || info.peek()?.namesOnly === true) return [];
    const isResult = message.role === "tool";
    if (index === 0 && message.role === "system") {
      return [{ name: "instructions", label: "Instructions", text, isResult }];
    }
    if (message.id === inputId) return [{ name: "prompt", label: "Prompt", text, isResult }];
    if (!isResult) return [];
    const label = `Result of ${oneLine(callNameOf(message, names) ?? message.callId, 60)}`;
    return [{ name: `${RESULT}${message.id}`, label, text, isResult }];
  });
}

const RESULT = "result ";

/** The reason why a changed result cannot be used: it was JSON and is not any more. */
function faultOf({ text, isResult }: PastText, value: string | undefined): string | null {
  if (!isResult || value === undefined || jsonFault(text) !== null) return null;
  const fault = jsonFault(value);
  return fault === null ? null : `The result was JSON, and the changed text is not: ${fault}`;
}

function jsonFault(text: string): string | null {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return errorText(error);
  }
}

function bodyOf({ turn, step }: RunForkPoint, changes: ReadonlyMap<string, string>, key: string): ForkBody {
  const text = (name: string): string | undefined => changes.get(name);
  const amount = (name: string): number | undefined => {
    const value = text(name);
    return value === undefined ? undefined : Number(value);
  };
  const results = [...changes].flatMap(([name, value]) =>
    name.startsWith(RESULT) ? [[name.slice(RESULT.length), value] as const] : [],
  );
  const edit = {
    prompt: text("prompt"),
    instructions: text("instructions"),
    ...(results.length > 0 ? { messages: Object.fromEntries(results) } : {}),
  };
  const budget = {
    maxSteps: amount("maxSteps"),
    maxTokens: amount("maxTokens"),
    maxCost: amount("maxCost"),
    maxSeconds: amount("maxSeconds"),
  };
  const isSet = (fields: object): boolean => Object.values(fields).some((value) => value !== undefined);
  return {
    key,
    at: step === null ? { turn } : { turn, step },
    model: text("model"),
    input: text("input"),
    ...(isSet(edit) ? { edit } : {}),
    ...(isSet(budget) ? { budget } : {}),
  };
}
