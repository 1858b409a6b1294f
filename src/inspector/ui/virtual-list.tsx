import type { ComponentChildren } from "preact";
import { useCallback, useLayoutEffect, useRef, useState } from "preact/hooks";

interface VirtualListProps {
  readonly count: number;
  readonly rowHeight: number;
  /** `slot`: the key of the row's element. Elements are reused when the list scrolls. */
  readonly render: (index: number, slot: number) => ComponentChildren;
  /** Keeps the list at its end while it is scrolled to the end. */
  readonly sticksToEnd?: boolean;
  /** The row to scroll to when it changes; -1 for none. */
  readonly shown?: number;
  readonly class?: string;
  readonly role?: "treegrid" | "list" | "listbox" | "table";
  readonly label: string;
  readonly columns?: number;
  readonly onKeyDown?: (event: KeyboardEvent) => void;
}

/** Rows rendered beyond the edges, so that fast scrolling shows no gap. */
const SPARE_ROWS = 6;

/** A list of rows of equal height. Only visible rows are rendered. */
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
    // Use the known scroll position; reading the element's would force a layout.
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
