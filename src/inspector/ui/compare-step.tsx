import type { Prompt } from "../feed/wire.ts";
import { useAsked } from "./asked.ts";
import { callNameOf, callNamesIn, MessageCard } from "./message-card.tsx";
import { plural } from "./format.ts";
import type { RunSession } from "./run-session.ts";

/** A step of one of the runs. */
interface StepPlace {
  readonly run: RunSession;
  readonly agentId: string;
  readonly seq: number;
}

interface StepProps {
  /** The step in the first run; `null` if that run does not have it. */
  readonly one: StepPlace | null;
  readonly other: StepPlace | null;
}

/** The prompts and answers of one step, side by side. Equal messages at the beginning are only counted. */
export function CompareStep({ one, other }: StepProps) {
  const places = [one, other];
  const { answer, failure } = useAsked(
    async () =>
      await Promise.all(
        places.map(async (place) =>
          place ? await place.run.client.prompt(place.run.runId, place.agentId, place.seq) : null,
        ),
      ),
    { subject: `${one?.agentId} ${one?.seq} ${other?.agentId} ${other?.seq}`, on: [] },
  );
  if (failure !== null) return <p class="empty">{failure}</p>;
  if (!answer) return <p class="empty loading">Building both prompts again …</p>;
  const [first = null, second = null] = answer;
  const same = sameMessages(first, second);
  return (
    <>
      {same > 0 && <p class="quiet">{plural(same, "message")} at the beginning of both prompts say the same.</p>}
      <div class="step-sides">
        <PromptSide label="A" prompt={first} from={same} />
        <PromptSide label="B" prompt={second} from={same} />
      </div>
    </>
  );
}

/** Number of equal messages at the beginning of both prompts. */
function sameMessages(one: Prompt | null, other: Prompt | null): number {
  if (!one || !other) return 0;
  const first = one.messages.findIndex((message, index) => wordsIn(message) !== wordsIn(other.messages[index]));
  return first < 0 ? one.messages.length : first;
}

/** Compare without ids, which contain the run's id. */
function wordsIn(message: Prompt["messages"][number] | undefined): string {
  if (!message) return "";
  const calls = message.role === "assistant" ? (message.toolCalls ?? []) : [];
  return JSON.stringify([message.role, message.content, calls.map(({ name, arguments: given }) => [name, given])]);
}

function PromptSide({ label, prompt, from }: { label: string; prompt: Prompt | null; from: number }) {
  if (!prompt) {
    return (
      <section>
        <h3>
          <b class="side">{label}</b> no such step
        </h3>
      </section>
    );
  }
  const names = callNamesIn(prompt.messages);
  return (
    <section>
      <h3>
        <b class="side">{label}</b> Prompt <span class="quiet">{plural(prompt.messages.length, "message")}</span>
      </h3>
      {prompt.messages.slice(from).map((message) => (
        <MessageCard key={message.id} message={message} callName={callNameOf(message, names)} />
      ))}
      <h3>Answer</h3>
      {prompt.answer ? <MessageCard message={prompt.answer} /> : <p class="quiet">No answer.</p>}
    </section>
  );
}
