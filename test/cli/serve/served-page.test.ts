import { expect, test } from "vitest";
import { noPageBecause } from "../../../src/cli/serve/served-page.ts";
import { knock } from "../../inspector/visitors.ts";
import { first, rows } from "../../support/full.ts";
import { served } from "../support/served.ts";

const access = { way: "token", token: "a-token-of-ann-0001", isGiven: false } as const;
const place = { host: "127.0.0.1", proxies: undefined, page: true, access } as const;

test("the page is served on this machine, with a token that fits into a URL", () => {
  expect(noPageBecause(place)).toBeNull();
  expect(noPageBecause({ ...place, host: "::1", proxies: 0 })).toBeNull();
});

test.each([
  ["it is turned off", { page: false }, "--no-page"],
  ["a proxy is configured", { proxies: 1 }, "the server is behind a proxy"],
  ["the server listens for other machines", { host: "0.0.0.0" }, "the server listens for other machines"],
  [
    "the token has other characters",
    { access: { ...access, token: "a token!" } },
    "contains characters other than letters",
  ],
])("the page is missing if %s", (_what, difference, reason) => {
  expect(noPageBecause({ ...place, ...difference })).toContain(reason);
});

test("the page of a server refuses clients without the token, with another host name, or from another origin", async () => {
  const { url, origin } = await served([]);
  const [address = "", token = ""] = url.split("/#token=");
  expect(address).toBe(origin);
  const bearer = { authorization: `Bearer ${token}` };
  const statusOf = async (path: string, headers: Readonly<Record<string, string>>): Promise<number> =>
    (await fetch(address + path, { headers })).status;
  expect(await statusOf("/inspector/api/info", bearer)).toBe(200);
  expect(await statusOf("/inspector/api/info", {})).toBe(401);
  expect(await statusOf("/inspector/api/info", { ...bearer, origin: "http://elsewhere.example" })).toBe(403);
  const feed = `${address.replace("http", "ws")}/inspector/feed`;
  const protocols = { "sec-websocket-protocol": `troupe.feed.v1, bearer.${token}` };
  expect((await knock(feed, protocols)).status).toBe(101);
  expect((await knock(feed, { ...protocols, host: "evil.example" })).status).toBe(403);
  // The API next to it is unchanged.
  expect(await statusOf("/api/agents", bearer)).toBe(200);
  expect(await statusOf("/healthz", {})).toBe(200);
});

const directory = { TROUPE_ENTRA_TENANT: "directory-1", TROUPE_ENTRA_AUDIENCE: "app-1" };

test.each(
  rows(
    [
      ["users of a directory", ["--auth", "entra"], "callers authenticate with Entra ID"],
      ["--no-page", ["--no-page"], "--no-page"],
      ["a proxy", ["--proxies", "1"], "the server is behind a proxy"],
      ["other machines", ["--host", "0.0.0.0"], "the server listens for other machines"],
    ] as const,
    first,
  ),
)("with %s a server has no page, at any path or with any token", async (_what, words, reason) => {
  const { origin, url } = await served(words, directory);
  expect(url).toContain(`none (${reason}); `);
  const local = origin.replace("0.0.0.0", "127.0.0.1");
  for (const path of ["/", "/inspector", "/inspector/", "/inspector/api/info", "/inspector/assets/app.js"]) {
    expect([path, (await fetch(local + path)).status]).toEqual([path, 404]);
  }
  const knocked = await knock(`${local.replace("http", "ws")}/inspector/feed`);
  expect(knocked.status).not.toBe(101);
});
