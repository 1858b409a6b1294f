import type { TroupeEvent, TroupeEventOf } from "../../state/index.ts";

export type RequestOpened = TroupeEventOf<"request.opened">;

/** Requests that wait for somebody, oldest first, as the events tell. */
export type OpenRequests = readonly RequestOpened[];

/** The open requests after one more event: a turn that ends leaves none behind. */
export function notedRequests(open: OpenRequests, event: TroupeEvent): OpenRequests {
  switch (event.type) {
    case "request.opened":
      return [...open.filter(({ requestId }) => requestId !== event.requestId), event];
    case "request.decided":
      return without(open, ({ requestId }) => requestId === event.requestId);
    // A call can be ended otherwise, by an abort for one.
    case "tool.completed":
    case "tool.failed":
      return without(open, ({ callId }) => callId === event.callId);
    case "turn.completed":
    case "turn.stopped":
    case "turn.failed":
      return without(open, ({ turnId }) => turnId === event.turnId);
    default:
      return open;
  }
}

function without(open: OpenRequests, isGone: (request: RequestOpened) => boolean): OpenRequests {
  return open.some(isGone) ? open.filter((request) => !isGone(request)) : open;
}
