import { useMemo } from "preact/hooks";
import { type Span, spanWords } from "../run-model/timeline.ts";
import { milliseconds, shortId, sinceStart } from "./format.ts";
import type { RunSession } from "./run-session.ts";
import { fittingAgents, shownOrder, shownPath } from "./shown-agents.ts";
import { oneLine, plainText } from "./untrusted.tsx";
import { VirtualList } from "./virtual-list.tsx";

export { spanWords };

interface TableProps {
  readonly run: RunSession;
  /** The open span, shown in the detail pane. */
  readonly opened: Span | undefined;
  readonly onOpen: (span: { readonly agent: number; readonly span: Span }) => void;
}

/** The timeline as a table. */
export function SpanTable({ run, opened, onOpen }: TableProps) {
  const moment = run.moment.value;
  const now = run.present.value;
  const [order, fitting, path] = [shownOrder.value, fittingAgents.value, shownPath.value];
  const rows = useMemo(
    () =>
      order
        .filter((agent) => fitting?.has(agent) !== false)
        .flatMap((agent) =>
          run.timeline
            .spansOf(agent)
            .filter((span) => span.first < moment.count && (!path || path.get(agent)?.has(span) === true))
            .map((span) => ({ span, agent })),
        ),
    [moment.count, run, order, fitting, path],
  );
  return (
    <VirtualList
      role="table"
      label="Timeline"
      class="grid-rows"
      count={rows.length}
      rowHeight={28}
      columns={5}
      render={(index, slot) => {
        const row = rows[index];
        const agent = row && run.log.agents[row.agent];
        if (!row || !agent) return null;
        const { span } = row;
        const end = Math.min(span.end, now, run.endOf(row.agent));
        return (
          <div key={slot} role="row" class="grid-row span-row">
            <span role="cell" class="figures">
              {sinceStart(span.start, run.log.startedAt)}
            </span>
            <span role="cell" title={plainText(agent.agentId)}>
              {oneLine(agent.name, 40)} <code class="id">{shortId(agent.agentId)}</code>
            </span>
            <span role="cell" class="quiet">
              {spanWords[span.kind]}
            </span>
            <span role="cell">
              <button
                type="button"
                class="link"
                aria-expanded={span === opened}
                onClick={() => onOpen({ agent: row.agent, span })}
              >
                {oneLine(span.label, 80)}
              </button>
            </span>
            <span role="cell" class="figures">
              {milliseconds(Math.max(0, end - span.start))}
              {span.last < 0 && " so far"}
              {span.isFailed && " failed"}
            </span>
          </div>
        );
      }}
    />
  );
}
