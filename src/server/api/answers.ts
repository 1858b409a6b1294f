import { z } from "zod";
import { InvalidInputError } from "../../errors/index.ts";
import type { Page, PageOptions } from "../core/pages.ts";
import type { RouteResponse } from "../core/route.ts";

/* Shared by the routes of this API: pages, responses, and the documented errors. */

export const errorSchema = z
  .object({
    error: z.object({
      code: z.string().meta({ description: "Stable; for programs." }),
      message: z.string(),
      retryable: z.boolean().meta({ description: "The unchanged request may succeed later." }),
      details: z.record(z.string(), z.unknown()),
    }),
  })
  .meta({ id: "Error", description: "The form of all errors." });

const problems = {
  400: "The input is invalid; the message names the field.",
  403: "A rule of the server forbids the request.",
  404: "The object does not exist, or belongs to another caller.",
  410: "The agent was deleted; its key cannot be used again.",
  409: "The current state of the agent or the request does not allow this.",
  422: "This Idempotency-Key was used with another body.",
} as const;

/** The error responses of a route. */
export function errors(...statuses: readonly (keyof typeof problems)[]): Readonly<Record<number, RouteResponse>> {
  return Object.fromEntries(statuses.map((status) => [status, { description: problems[status], isError: true }]));
}

/** One page of a list. `next` is the value of `after` for the next page, null on the last page. */
export function pageOf<Item extends z.ZodType>(item: Item) {
  return z.object({
    items: z.array(item),
    next: z.string().nullable().meta({ description: "Value of `after` for the next page; null on the last page." }),
  });
}

/** `limit` and `after` of a list. */
export const pageQuery = {
  limit: z.coerce.number().int().min(1).max(100).optional().meta({ description: "Items of a page, 1 to 100." }),
  after: z
    .base64url()
    .transform((text) => Buffer.from(text, "base64url").toString())
    .optional()
    .meta({ description: "`next` of the page before." }),
};

export const agentParams = z.object({
  agentId: z.string().meta({ description: "Id of an agent or subagent." }),
});

/** Responds with a page. Cursors contain ids with `#`; in this form they need no escaping in a URL. */
export function pageJson<Item>({ items, next }: Page<Item>): Response {
  return json({ items, next: next === null ? null : Buffer.from(next).toString("base64url") });
}

/** Responds with a list without pages. */
export function wholeList(items: readonly unknown[]): Response {
  return json({ items, next: null });
}

/** One page of a list that is read whole. Throws `InvalidInputError` if no item has the key `after`. */
export function pageAfter<Item>(
  items: readonly Item[],
  { after, limit = 100 }: PageOptions,
  keyOf: (item: Item) => string,
): Page<Item> {
  const from = after === undefined ? 0 : items.findIndex((item) => keyOf(item) === after) + 1;
  if (from === 0 && after !== undefined)
    throw new InvalidInputError("after is not a cursor of this list; start without it");
  const shown = items.slice(from, from + limit);
  const last = shown.at(-1);
  return { items: shown, next: last && from + limit < items.length ? keyOf(last) : null };
}

export function json(value: unknown, init?: ResponseInit): Response {
  return Response.json(value, init);
}

export const idempotencyHeaders = z.object({
  "idempotency-key": z.string().optional().meta({
    description: "1 to 255 visible ASCII characters. A repeated request with the same key has no further effect.",
  }),
});

export function replayedHeader(isReplayed: boolean): Record<string, string> {
  return isReplayed ? { "idempotency-replayed": "true" } : {};
}
