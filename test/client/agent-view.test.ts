import { textOf } from "troupe";
import { type AgentSnapshot, AgentView, type ShownAgent, type TroupeClient } from "troupe/client";
import { describe, expect, it, onTestFinished } from "vitest";
import { clientServed } from "./client-served.ts";

function opened(client: TroupeClient, agent: ShownAgent = { definition: "desk", key: "page" }) {
  const view = new AgentView(client, agent);
  const seen: AgentSnapshot[] = [];
  view.subscribe(() => seen.push(view.snapshot()));
  view.open();
  onTestFinished(view.close);
  /** The first matching snapshot from now on. */
  const until = (isWanted: (snapshot: AgentSnapshot) => boolean): Promise<AgentSnapshot> =>
    new Promise((resolve) => {
      const look = (): void => {
        if (!isWanted(view.snapshot())) return;
        leave();
        resolve(view.snapshot());
      };
      const leave = view.subscribe(look);
      look();
    });
  return { view, seen, until };
}

const transcript = ({ messages }: AgentSnapshot) => messages.map(({ role, content }) => `${role}: ${textOf(content)}`);

describe("a view of an agent", () => {
  it("shows the conversation, and the answer while it is written, once", async () => {
    const { client } = await clientServed();
    const { view, seen, until } = opened(client);
    expect(view.snapshot().status).toBe("connecting");
    await until(({ status }) => status === "ready");
    await view.send("hello");
    const shown = await until(({ status, turn }) => status === "ready" && turn?.status === "completed");
    expect(transcript(shown)).toEqual(["user: hello", "assistant: You said hello"]);
    expect(shown).toMatchObject({ text: "", requests: [], error: null, turn: { result: { text: "You said hello" } } });
    for (const snapshot of seen.filter(({ text }) => text !== "")) {
      expect("You said hello".startsWith(snapshot.text)).toBe(true);
      expect(transcript(snapshot)).not.toContain("assistant: You said hello");
    }
  });

  it("shows open requests, and continues after the decision", async () => {
    const { client } = await clientServed();
    const { view, until } = opened(client);
    await view.send("remove");
    const { requests } = await until(({ status }) => status === "waiting");
    const [request] = requests;
    expect(request).toMatchObject({ kind: "approval", arguments: { path: "/tmp" } });
    if (request !== undefined) await view.decide(request, { verdict: "approved" });
    const shown = await until(({ status }) => status === "ready");
    expect(shown.requests).toEqual([]);
    expect(transcript(shown).at(-1)).toBe("assistant: So: removed /tmp");
  });

  it("shows the same after a reload, and changes of others", async () => {
    const { client } = await clientServed();
    const first = opened(client);
    await first.view.send("remove");
    await first.until(({ status }) => status === "waiting");
    first.view.close();
    const second = opened(client);
    const { requests, agentId } = await second.until(({ status }) => status === "waiting");
    expect(requests).toHaveLength(1);
    await client.agent(agentId ?? "").abort();
    const shown = await second.until(({ status }) => status === "ready");
    expect(shown.turn).toMatchObject({ status: "stopped" });
    expect(shown.requests).toEqual([]);
  });

  it("that is opened twice, as by StrictMode, creates one agent and shows each message once", async () => {
    const { client } = await clientServed();
    const { view, until } = opened(client);
    view.close();
    view.open();
    await until(({ status }) => status === "ready");
    await view.send("hello");
    expect(transcript(await until(({ turn }) => turn?.status === "completed"))).toHaveLength(2);
    expect((await client.agents()).items).toHaveLength(1);
  });

  it("keeps the identity of existing message objects", async () => {
    const { client } = await clientServed();
    const { view, until } = opened(client);
    await view.send("one");
    const before = await until(({ turn }) => turn?.status === "completed");
    await view.send("two");
    const after = await until(({ turn }) => turn?.number === 2 && turn.status === "completed");
    expect(after.messages.slice(0, 2)).toEqual(before.messages);
    expect(after.messages[0]).toBe(before.messages[0]);
  });

  it("reads a conversation that is longer than a page", async () => {
    const { client } = await clientServed();
    const messages = Array.from({ length: 250 }, (_, index) => ({ role: "user" as const, content: String(index) }));
    await client.createAgent({ definition: "desk", key: "page", messages });
    const { view, until } = opened(client);
    await until(({ status }) => status === "ready");
    await view.send("hello");
    const shown = await until(({ turn }) => turn?.status === "completed");
    expect(shown.messages.map(({ content }) => content)).toEqual([
      ...messages.map(({ content }) => content),
      "hello",
      "You said hello",
    ]);
  });

  it("contains the error that ended it, and can be reopened", async () => {
    const { client, clientWith, fetch: send } = await clientServed();
    await client.createAgent({ definition: "desk", key: "page" });
    let isDown = true;
    const failing: typeof fetch = async (input, init) => {
      if (isDown) throw new TypeError("connection refused");
      return await send(input, init);
    };
    const { view, until } = opened(clientWith({ fetch: failing, retries: 0 }));
    const { error } = await until(({ status }) => status === "broken");
    expect(error).toMatchObject({ code: "unreachable" });
    await expect(view.send("hello")).rejects.toMatchObject({ code: "unreachable" });
    isDown = false;
    view.open();
    expect(await until(({ status }) => status === "ready")).toMatchObject({ error: null });
  });

  it("is unchanged if a call is refused", async () => {
    const { client } = await clientServed();
    const { view, until } = opened(client);
    await view.send("ask");
    await until(({ status }) => status === "waiting");
    await expect(view.send("hello")).rejects.toMatchObject({ code: "agent_busy" });
    expect(view.snapshot()).toMatchObject({ status: "waiting", error: null });
  });

  it("sends nothing after it was closed", async () => {
    const { client, sent } = await clientServed();
    const { view, until } = opened(client);
    await until(({ status }) => status === "ready");
    view.close();
    const before = sent.length;
    await expect(view.send("hello")).rejects.toMatchObject({ code: "invalid_input" });
    expect(sent.length).toBe(before);
  });

  it("refuses an agent without a name", async () => {
    const { client } = await clientServed();
    expect(() => new AgentView(client, { definition: "desk" } as never)).toThrow("key is undefined");
  });
});
