import { expect, test } from "vitest";
import { GET } from "../app/troupe/[...path]/route.ts";

const url = "http://app.invalid/troupe/api/definitions";

test("the agents answer a caller with the token, and no other", async () => {
  process.env["TROUPE_SERVE_TOKEN"] = "a-token-for-the-tests";
  expect((await GET(new Request(url))).status).toBe(401);
  const headers = { authorization: "Bearer a-token-for-the-tests" };
  const answer = await GET(new Request(url, { headers }));
  expect(answer.status).toBe(200);
  expect(await answer.text()).toContain("desk");
});
