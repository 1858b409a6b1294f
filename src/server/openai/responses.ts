import type { Route } from "../core/route.ts";
import type { OpenAiPlace } from "./place.ts";

/** The routes of the Responses API. */
export function responsesRoutes(_place: OpenAiPlace): readonly Route[] {
  return [];
}
