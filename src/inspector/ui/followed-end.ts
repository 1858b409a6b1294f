import type { RefObject } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

/** Largest distance from the end, in pixels, at which a list counts as scrolled to its end. */
const NEAR = 24;

/**
 * Keeps a list scrolled to its end while its content grows, if the reader is at the end. `list` is the scrolling element,
 * with one child that contains the content. The list starts at its end.
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
      // Only scrolling up leaves the end; growing content does not.
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
