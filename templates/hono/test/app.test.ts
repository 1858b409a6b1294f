import { memoryStores } from "troupe";
import { createClient } from "troupe/client";
import { expect, test } from "vitest";
import { createApp } from "../src/app.ts";

const token = "a-token-for-the-tests";

test("the agents answer a caller with the token, and no other", async () => {
  const { app, close } = await createApp({ stores: memoryStores(), token });
  try {
    expect((await app.request("/api/definitions")).status).toBe(401);
    const client = createClient({
      url: "http://app.invalid",
      headers: () => ({ authorization: `Bearer ${token}` }),
      fetch: async (...request: Parameters<typeof fetch>) => app.request(...request),
    });
    const agent = await client.createAgent({ definition: "desk" });
    expect((await agent.info()).definition.name).toBe("desk");
  } finally {
    await close();
  }
});
