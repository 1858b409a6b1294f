import { useState } from "preact/hooks";
import { Composer } from "./composer.tsx";
import { client, info } from "./page-state.ts";
import { go } from "./route.ts";
import { oneLine } from "./untrusted.tsx";

/** Begins a conversation with an agent of a definition that this process has. */
export function NewTalk() {
  const definitions = info.value?.definitions ?? [];
  const [name, setName] = useState(definitions[0] ?? "");
  const act = client.value?.act;
  if (!act || definitions.length === 0) return null;
  return (
    <section class="new-talk" aria-label="New conversation">
      <h2>
        Talk to{" "}
        <select aria-label="Agent" value={name} onChange={({ currentTarget }) => setName(currentTarget.value)}>
          {definitions.map((one) => (
            <option key={one} value={one}>
              {oneLine(one, 60)}
            </option>
          ))}
        </select>
      </h2>
      <Composer
        label={`Write to a new ${oneLine(name, 40)}`}
        send={async ({ key, text, images }) => {
          // The key names the agent too, so that a second try does not begin a second one.
          const { agentId } = await act.createAgent({ definition: name, agentId: `talk-${key.slice(0, 8)}` });
          await act.startTurn(agentId, { key, text, ...(images.length > 0 ? { images } : {}) });
          go({ page: "run", runId: agentId, at: null, agent: null, view: "talk" });
        }}
      />
    </section>
  );
}
