import { expect, test } from "vitest";
import { noPageBecause } from "../../../src/cli/serve/served-page.ts";

const access = { way: "token", token: "a-token-of-ann-0001", isGiven: false } as const;
const place = { host: "127.0.0.1", proxies: undefined, page: true, access } as const;

test("the page is there on this machine, with a token that an address can carry", () => {
  expect(noPageBecause(place)).toBeNull();
  expect(noPageBecause({ ...place, host: "::1", proxies: 0 })).toBeNull();
});

test.each([
  ["it was left out", { page: false }, "--no-page"],
  ["a proxy stands in front", { proxies: 1 }, "there is a proxy in front"],
  ["other machines reach the server", { host: "0.0.0.0" }, "the server listens for other machines"],
  ["the token has other characters", { access: { ...access, token: "a token!" } }, "has other characters than letters"],
])("it is not there when %s", (_what, difference, reason) => {
  expect(noPageBecause({ ...place, ...difference })).toContain(reason);
});
