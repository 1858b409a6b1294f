import type { ComponentChildren } from "preact";
import { useCallback, useLayoutEffect, useRef, useState } from "preact/hooks";

interface VirtualListProps {
  readonly count: number;
  readonly rowHeight: number;
  /** `slot`: the row's place among those in the page, its key: elements are filled anew when the list moves, not made anew. */
  readonly render: (index: number, slot: number) => ComponentChildren;
  /** Keeps the end in sight while it is in sight. */
  readonly sticksToEnd?: boolean;
  /** The row to bring into sight when it changes; -1: none. */
  readonly shown?: number;
  readonly class?: string;
  readonly role?: "treegrid" | "list" | "listbox" | "table";
  readonly label: string;
  readonly columns?: number;
  readonly onKeyDown?: (event: KeyboardEvent) => void;
}

/** Rows beyond the edges, so that fast scrolling shows no gap. */
const SPARE_ROWS = 6;

/** A list of rows of one height, of which only those in sight are in the page. */
export function VirtualList(props: VirtualListProps) {
  const { count, rowHeight, render, sticksToEnd = false, shown = -1 } = props;
  const box = useRef<HTMLDivElement>(null);
  const [place, setPlace] = useState({ top: 0, height: 600 });
  const isAtEnd = useRef(true);
  const look = useCallback(() => {
    const element = box.current;
    if (!element) return;
    isAtEnd.current = element.scrollTop + element.clientHeight >= element.scrollHeight - rowHeight;
    setPlace({ top: element.scrollTop, height: element.clientHeight });
  }, [rowHeight]);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const observer = new ResizeObserver(look);
    observer.observe(element);
    return () => observer.disconnect();
  }, [look]);
  useLayoutEffect(() => {
    const element = box.current;
    if (element && sticksToEnd && isAtEnd.current) element.scrollTop = element.scrollHeight;
  }, [count, sticksToEnd]);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element || shown < 0) return;
    const top = shown * rowHeight;
    // The known place and not the element's, which would make the browser lay everything out first.
    if (top < place.top) element.scrollTop = top;
    else if (top + rowHeight > place.top + place.height) element.scrollTop = top + rowHeight - place.height;
  }, [shown, rowHeight]);
  const first = Math.max(0, Math.floor(place.top / rowHeight) - SPARE_ROWS);
  const last = Math.min(count, Math.ceil((place.top + place.height) / rowHeight) + SPARE_ROWS);
  const rows = [];
  for (let index = first; index < last; index += 1) rows.push(render(index, index - first));
  return (
    <div
      ref={box}
      class={`virtual ${props.class ?? ""}`}
      tabIndex={0}
      role={props.role ?? "list"}
      aria-label={props.label}
      aria-rowcount={props.role === "treegrid" || props.role === "table" ? count : undefined}
      aria-colcount={props.columns}
      onScroll={look}
      onKeyDown={props.onKeyDown}
    >
      <div class="virtual-space" role="presentation" style={{ height: `${count * rowHeight}px` }}>
        <div class="virtual-rows" role="presentation" style={{ transform: `translateY(${first * rowHeight}px)` }}>
          {rows}
        </div>
      </div>
    </div>
  );
}
