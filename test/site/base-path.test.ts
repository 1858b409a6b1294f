import { expect, test } from "vitest";
import { basePath } from "../../site/base-path.ts";

test.each(["/", "/troupe/", "/docs/troupe-1.0/"])("%s is a base path", (base) => {
  expect(basePath({ TROUPE_SITE_BASE: base })).toBe(base);
});

test.each(["", "troupe", "/troupe", "troupe/", "//", "/a//b/", "/../", "/a b/", "https://example.com/"])(
  '"%s" is refused as a base path',
  (base) => {
    expect(() => basePath({ TROUPE_SITE_BASE: base })).toThrow(
      `Invalid TROUPE_SITE_BASE "${base}"; expected a path with a slash at both ends`,
    );
  },
);

test("the site is at the root by default", () => {
  expect(basePath({})).toBe("/");
});
