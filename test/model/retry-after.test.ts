import { describe, expect, it } from "vitest";
import { parseRetryAfter } from "../../src/model/call-failure.ts";

const now = Date.parse("2026-01-01T00:00:00Z");
const parsed = (headers: Record<string, string>) => parseRetryAfter(new Headers(headers), now);

describe("parseRetryAfter", () => {
  it.each([
    [{ "retry-after": "2" }, 2_000],
    [{ "retry-after": "0.5" }, 500],
    [{ "retry-after": "0" }, 0],
    [{ "retry-after": "Thu, 01 Jan 2026 00:00:09 GMT" }, 9_000],
    [{ "retry-after": "Wed, 31 Dec 2025 00:00:00 GMT" }, 0],
    [{ "retry-after-ms": "12.3", "retry-after": "9" }, 13],
    [{ "retry-after-ms": "soon", "retry-after": "9" }, 9_000],
    [{ "retry-after": "soon" }, undefined],
    [{ "retry-after": "Thursday, 01-Jan-26 00:00:09 GMT" }, 9_000],
    [{ "retry-after": "2026-01-01T00:00:09Z" }, 9_000],
    [{ "retry-after": "-5x" }, undefined],
    [{ "retry-after": "-5" }, undefined],
    [{ "retry-after": "+5" }, undefined],
    [{ "retry-after": "abc 1" }, undefined],
    [{}, undefined],
  ])("reads %o as %o ms", (headers, expected) => {
    expect(parsed(headers as Record<string, string>)).toBe(expected);
  });
});
