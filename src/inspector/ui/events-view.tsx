import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { SearchHit } from "../feed/wire.ts";
import { countBelow, type EventGroup, eventGroups, EventPlaces, eventText } from "../run-model/event-rows.ts";
import { errorText } from "./feed-client.ts";
import { plural, shortId, sinceStart } from "./format.ts";
import { Check, Icon } from "./parts.tsx";
import { flowText, type JsonValue, JsonView, oneLine, plainText, Untrusted } from "./untrusted.tsx";
import { copyText, go, selectAgent, selectedAgent } from "./page-state.ts";
import type { RunSession } from "./run-session.ts";
import { fittingAgents } from "./shown-agents.ts";
import { HiddenAgents } from "./tree-head.tsx";
import { sought } from "./text-view.tsx";
import { VirtualList } from "./virtual-list.tsx";

const ROW_HEIGHT = 26;

const filter = signal("");
const groups = signal<ReadonlySet<EventGroup>>(new Set());
const isOfOneAgent = signal(false);
/** Index of the entry in the detail pane; `null` if there is none. */
const opened = signal<number | null>(null);

/** All entries of the journal up to the moment, one row per entry. */
export function EventsView({ run }: { readonly run: RunSession }) {
  const { count } = run.moment.value;
  const selected = isOfOneAgent.value ? selectedAgent.value : -1;
  const ofSelected = useMemo(() => (selected < 0 ? null : new Set([selected])), [selected]);
  const agents = ofSelected ?? fittingAgents.value;
  const text = filter.value.trim().toLowerCase();
  const before = useRef<EventPlaces | undefined>(undefined);
  const passing = useMemo(() => {
    before.current = new EventPlaces(run.log, { text, agents, groups: groups.value }, before.current);
    return before.current;
  }, [run, text, agents, groups.value]);
  const places = run.length.value === 0 ? null : passing.update();
  const { first } = run.log;
  const all = count - first;
  const length = places === null ? all : countBelow(places, count);
  const placeAt = (index: number): number => (places === null ? first + index : (places[index] ?? 0));
  const rowOf = (place: number): number => (places === null ? place - first : countBelow(places, place));
  const shown = opened.value === null ? -1 : rowOf(opened.value);
  return (
    <div class={opened.value === null ? "events" : "events with-detail"}>
      <div class="events-list">
        <div class="view-bar">
          <label class="search-field">
            <Icon name="search" />
            <input
              type="search"
              placeholder="Filter by type, agent and text"
              aria-label="Filter events"
              value={filter.value}
              onInput={({ currentTarget }) => {
                filter.value = currentTarget.value;
              }}
            />
          </label>
          <Groups />
          <Check label="selected agent only" of={isOfOneAgent} />
          <span class="spacer" />
          {ofSelected === null && <HiddenAgents run={run} />}
          <span class="quiet figures">
            {length === all ? plural(all, "event") : `${length.toLocaleString("en")} of ${plural(all, "event")}`}
          </span>
        </div>
        {length === 0 ? (
          <div class="empty">
            <p>{all === 0 ? "Nothing has happened at this moment." : "No event fits the filter."}</p>
          </div>
        ) : (
          <VirtualList
            role="table"
            label="Events"
            class="grid-rows"
            count={length}
            rowHeight={ROW_HEIGHT}
            columns={4}
            sticksToEnd={run.isLive.value}
            shown={shown >= 0 ? shown : run.isLive.value ? -1 : length - 1}
            onKeyDown={(event) => {
              const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
              if (by === undefined || opened.value === null) return;
              event.preventDefault();
              const next = shown + by;
              if (next >= 0 && next < length) opened.value = placeAt(next);
            }}
            render={(index, slot) => <EventRow key={slot} run={run} place={placeAt(index)} />}
          />
        )}
        {text.length > 1 && <ContentSearch key={text} run={run} text={filter.value.trim()} />}
      </div>
      {opened.value !== null && <EventDetail run={run} place={opened.value} />}
    </div>
  );
}

function Groups() {
  return (
    <fieldset class="chips">
      <legend class="visually-hidden">Kinds of events</legend>
      {eventGroups.map((group) => (
        <button
          key={group}
          type="button"
          class="chip"
          aria-pressed={groups.value.has(group)}
          onClick={() => {
            const next = new Set(groups.value);
            if (!next.delete(group)) next.add(group);
            groups.value = next;
          }}
        >
          {group}
        </button>
      ))}
    </fieldset>
  );
}

function EventRow({ run, place }: { readonly run: RunSession; readonly place: number }) {
  const { log } = run;
  const entry = log.entry(place);
  const agent = log.agents[log.agentOf(place)];
  if (!entry || !agent) return null;
  const { title, name, detail, tone } = eventText(entry);
  const isOpen = opened.value === place;
  return (
    <div
      role="row"
      class={`grid-row event-row ${tone}${isOpen ? " selected" : ""}`}
      aria-selected={isOpen}
      onClick={() => {
        opened.value = isOpen ? null : place;
      }}
    >
      <span role="cell" class="figures quiet">
        {sinceStart(log.timeOf(place), log.startedAt)}
      </span>
      <span role="cell" class="event-agent" title={plainText(agent.agentId)}>
        {oneLine(agent.name, 30)} <code class="id">{shortId(agent.agentId)}</code>
      </span>
      <span role="cell" class="event-title">
        <span class="tone-mark" aria-hidden="true" />
        <span>{title}</span>
      </span>
      <span role="cell" class="event-detail">
        {name !== "" && <b>{oneLine(name, 80)}</b>} {oneLine(detail, 240)}
      </span>
    </div>
  );
}

function EventDetail({ run, place }: { readonly run: RunSession; readonly place: number }) {
  const { log } = run;
  const entry = log.entry(place);
  const agent = log.agents[log.agentOf(place)];
  const cursor = log.cursorOf(place);
  const [stored, setStored] = useState<JsonValue | undefined>();
  const [failure, setFailure] = useState<string | null>(null);
  useEffect(() => {
    let isGone = false;
    setStored(undefined);
    setFailure(null);
    run.client.row(run.runId, cursor).then(
      (row) => {
        const found = row.entries.find((one) => (one as { seq?: number } | null)?.seq === entry?.seq);
        if (!isGone) setStored((found ?? null) as JsonValue);
      },
      (error: unknown) => {
        if (!isGone) setFailure(errorText(error));
      },
    );
    return () => {
      isGone = true;
    };
  }, [run, cursor, entry?.seq]);
  if (!entry || !agent) return null;
  const { title, name } = eventText(entry);
  const value = (stored ?? (entry as unknown)) as JsonValue;
  return (
    <aside class="detail" aria-label="Event">
      <header class="detail-head">
        <h2>
          {title} {name !== "" && <span class="quiet">{oneLine(name, 60)}</span>}
        </h2>
        <button
          type="button"
          class="plain"
          aria-label="Close"
          onClick={() => {
            opened.value = null;
          }}
        >
          <Icon name="close" />
        </button>
      </header>
      <p class="detail-actions">
        <button type="button" onClick={() => run.pin(place + 1)}>
          Go to this moment
        </button>
        <button type="button" onClick={() => selectAgent(agent.agentId)}>
          Select {oneLine(agent.name, 20)} {shortId(agent.agentId)}
        </button>
        <button type="button" onClick={() => void copyText(JSON.stringify(value, null, 2), "Entry")}>
          <Icon name="copy" /> JSON
        </button>
      </p>
      <dl class="facts">
        <dt>entry</dt>
        <dd>
          <code>{entry.type}</code>
        </dd>
        <dt>agent</dt>
        <dd>
          <code>
            <Untrusted text={agent.agentId} />
          </code>
        </dd>
        <dt>cursor</dt>
        <dd class="figures">
          {cursor}, entry {entry.seq} of its journal
        </dd>
        <dt>time</dt>
        <dd class="figures">{new Date(entry.at).toISOString()}</dd>
      </dl>
      {failure !== null && <p class="note">{failure} Shown without contents.</p>}
      <JsonView key={`${place} ${stored === undefined}`} value={value} />
    </aside>
  );
}

/** Searches the contents on the server, because the page does not have them. */
function ContentSearch({ run, text }: { readonly run: RunSession; readonly text: string }) {
  const [hits, setHits] = useState<readonly SearchHit[] | null>(null);
  const [state, setState] = useState("");
  const [stop, setStop] = useState<AbortController | null>(null);
  useEffect(() => () => stop?.abort(), [stop]);
  const search = async (): Promise<void> => {
    const abort = new AbortController();
    setStop(abort);
    const found: SearchHit[] = [];
    try {
      for (let after: number | null = 0; after !== null; ) {
        setState(`searching … ${found.length} found`);
        const page: Awaited<ReturnType<typeof run.client.search>> = await run.client.search(run.runId, text, {
          after,
          signal: abort.signal,
        });
        found.push(...page.hits);
        setHits([...found]);
        after = found.length >= 500 ? null : page.next;
      }
      setState(found.length === 0 ? "Nothing found in contents." : `${plural(found.length, "hit")} in contents`);
    } catch (error) {
      setState(abort.signal.aborted ? `stopped, ${found.length} found` : errorText(error));
    }
    setStop(null);
  };
  return (
    <section class="content-search" aria-label="Search in contents">
      <p>
        <button type="button" onClick={() => (stop ? stop.abort() : void search())}>
          {stop ? "Stop" : `Search contents for “${oneLine(text, 40)}”`}
        </button>
        <span class="quiet" aria-live="polite">
          {state}
        </span>
      </p>
      {hits !== null && hits.length > 0 && (
        <ul>
          {hits.map((hit) => (
            <li key={`${hit.cursor} ${hit.seq}`}>
              <button
                type="button"
                class="hit"
                onClick={() => {
                  run.pin(run.log.countUpTo(hit.cursor));
                  if (hit.messageId === null) selectAgent(hit.agentId);
                  else {
                    sought.value = { messageId: hit.messageId, text: hit.match };
                    go({ agent: hit.agentId, view: "messages" });
                  }
                }}
              >
                <code class="id">{shortId(hit.agentId)}</code> <span class="quiet">{hit.entry}</span>{" "}
                {flowText(hit.before)}
                <mark>{flowText(hit.match)}</mark>
                {flowText(hit.after)}
              </button>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
