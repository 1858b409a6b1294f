import type { RefObject } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

/** How far from its end a list may be and still count as at the end, in pixels. */
const NEAR = 24;

/**
 * Keeps the end of a scrolled list in sight while the reader is at it and its content grows. `list` is the element that
 * scrolls, with one child that holds the content. The reader is at the end at first, and again after scrolling there.
 */
export function useFollowedEnd(list: RefObject<HTMLElement | null>, isThere = true): void {
  const isAtEnd = useRef(true);
  useLayoutEffect(() => {
    const { current } = list;
    const content = current?.firstElementChild;
    if (!current || !content) return undefined;
    let before = 0;
    const look = (): void => {
      const { scrollTop, clientHeight, scrollHeight } = current;
      if (scrollTop + clientHeight >= scrollHeight - NEAR) isAtEnd.current = true;
      // Only scrolling up leaves the end. Content that has grown below it does not.
      else if (scrollTop < before) isAtEnd.current = false;
      before = scrollTop;
    };
    const observer = new ResizeObserver(() => {
      if (isAtEnd.current) current.scrollTop = current.scrollHeight;
    });
    observer.observe(current);
    observer.observe(content);
    current.addEventListener("scroll", look, { passive: true });
    return () => {
      observer.disconnect();
      current.removeEventListener("scroll", look);
    };
  }, [isThere]);
}
