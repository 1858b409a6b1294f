import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { parse } from "yaml";
import { defineAgent, NotFoundError } from "../../src/index.ts";
import { type SessionRecord, sessionRecord, yamlSession } from "../../src/telemetry/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { createGate } from "../support/turn-probes.ts";
import { leadOfReaders, temporaryFolder } from "./team.ts";

function recordsIn(directory: string): Record<string, SessionRecord> {
  const names = readdirSync(directory).toSorted();
  return Object.fromEntries(
    names.map((name) => [name, parse(readFileSync(join(directory, name), "utf8")) as SessionRecord]),
  );
}

function onlyRecordIn(directory: string): SessionRecord {
  const [record, ...more] = Object.values(recordsIn(directory));
  if (!record || more.length > 0) throw new Error(`there are ${more.length + 1} files`);
  return record;
}

describeRuntimes("a YAML file for each session", (stage) => {
  it("H8: contains each turn separately, and equals the journal", async () => {
    const directory = join(temporaryFolder(), "sessions");
    const runtime = await stage().open({ agents: [leadOfReaders(async () => stage().clock.advance(30))] });
    const sessions = yamlSession(runtime, { directory });
    const desk = await runtime.agent("lead", { agentId: "desk", sessionId: "visit" });
    await desk.start();
    const first = await desk.executeTurn("Compare").result;
    await sessions.flush();
    const afterFirst = onlyRecordIn(directory).turns[0];
    stage().clock.advance(5_000);
    const second = await desk.executeTurn(null).result;
    await sessions.flush();

    expect(Object.keys(recordsIn(directory))).toEqual(["desk_2026-01-01T00-00-00.000Z.yaml"]);
    const record = onlyRecordIn(directory);
    expect(record).toMatchObject({
      agent: "lead",
      agent_id: "desk",
      session_id: "visit",
      model: "large",
      started: "2026-01-01T00:00:00.000Z",
    });
    expect(record.turns).toMatchObject([
      {
        turn_id: "desk#1",
        input: "Compare",
        model: "large",
        duration_ms: 60,
        tokens: first.usage.inputTokens + first.usage.outputTokens,
        cost: first.cost,
        tools_called: ["reader", "reader"],
        result: "the end",
        status: "completed",
        stop_reason: "completed",
        subagents: [
          { agent: "reader", model: "small", tools_called: ["fetch_page"], status: "completed" },
          { agent: "reader", model: "small", tools_called: ["fetch_page"], status: "completed" },
        ],
      },
      { turn_id: "desk#2", input: "", tokens: second.usage.inputTokens + second.usage.outputTokens, cost: second.cost },
    ]);
    expect(record.turns[0]).toEqual(afterFirst);
    expect(await sessionRecord(runtime, "desk")).toEqual(record);
    await sessions.close();
  });

  it("continues in another process where the first one stopped", async () => {
    const directory = temporaryFolder();
    const runtime = await stage().open({ agents: [leadOfReaders()] });
    const first = await runtime.agent("lead", { agentId: "desk" });
    await first.start();
    // No listener received this turn.
    await first.executeTurn("Compare").result;
    await first.shutdown();
    const other = await stage().open({ agents: [leadOfReaders()] });
    const sessions = yamlSession(other, { directory });
    const desk = await other.agent("lead", { agentId: "desk" });
    await desk.start();
    await desk.executeTurn("Again").result;
    await sessions.flush();
    const record = onlyRecordIn(directory);
    expect(record.turns.map(({ input }) => input)).toEqual(["Compare", "Again"]);
    expect(record).toEqual(await sessionRecord(other, "desk"));
    await sessions.close();
  });

  it("contains a whole turn if it started in the middle of it", async () => {
    const directory = temporaryFolder();
    const gate = createGate();
    const runtime = await stage().open({ agents: [leadOfReaders(() => gate.pass())] });
    const desk = await runtime.agent("lead", { agentId: "desk" });
    await desk.start();
    const turn = desk.executeTurn("Compare");
    await gate.reached(2);
    const sessions = yamlSession(runtime, { directory });
    gate.open();
    await turn.result;
    await sessions.close();
    const record = onlyRecordIn(directory);
    expect(record.turns).toMatchObject([{ input: "Compare", subagents: [{ tools_called: ["fetch_page"] }, {}] }]);
    expect(record).toEqual(await sessionRecord(runtime, "desk"));
  });

  it("contains the messages of each turn if requested", async () => {
    const directory = temporaryFolder();
    const runtime = await stage().open({ agents: [leadOfReaders()] });
    const sessions = yamlSession(runtime, { directory, messages: true });
    const desk = await runtime.agent("lead", { agentId: "desk" });
    await desk.start();
    await desk.executeTurn("Compare").result;
    await desk.executeTurn("Again").result;
    await sessions.close();
    const record = onlyRecordIn(directory);
    expect(record.turns[0]?.messages).toMatchObject([
      { role: "user", content: "Compare" },
      { role: "assistant", tool_calls: [{ id: "desk#1:1:0", name: "reader", arguments: { input: "north" } }, {}] },
      { role: "tool", tool_call_id: "desk#1:1:0", content: "read: text of north" },
      { role: "tool", tool_call_id: "desk#1:1:1", content: "read: text of south" },
      { role: "assistant", content: "the end" },
    ]);
    expect(record.turns[1]?.messages?.[0]).toEqual({ role: "user", content: "Again" });
    expect(await sessionRecord(runtime, "desk", { messages: true })).toEqual(record);
  });
});

describeRuntimes(
  "a record from the journal",
  (stage) => {
    it("exists for subagents, and not for agents without a turn", async () => {
      const runtime = await stage().open({ agents: [leadOfReaders()] });
      const desk = await runtime.agent("lead", { agentId: "desk" });
      await desk.start();
      await expect(sessionRecord(runtime, "desk")).rejects.toThrow(NotFoundError);
      await desk.executeTurn("Compare").result;
      const [child] = (await runtime.list({ rootAgentId: "desk" })).filter(
        ({ parentAgentId }) => parentAgentId !== null,
      );
      expect(await sessionRecord(runtime, child?.agentId ?? "")).toMatchObject({
        agent: "reader",
        turns: [{ tools_called: ["fetch_page"], result: expect.stringMatching(/^read: text of (north|south)$/) }],
      });
    });

    it("contains a failed turn and the error", async () => {
      const agent = defineAgent({ name: "clerk", model: scriptedModel({ error: new Error("no answer today") }) });
      const runtime = await stage().open({ agents: [agent] });
      const desk = await runtime.agent("clerk", { agentId: "desk" });
      await desk.start();
      await desk.executeTurn("Hello").result;
      const { turns } = await sessionRecord(runtime, "desk");
      expect(turns).toMatchObject([
        { status: "failed", stop_reason: "error", error: expect.stringContaining("no answer today") },
      ]);
    });

    it("is complete again for an agent that was idle while hundreds of others worked", async () => {
      const directory = temporaryFolder();
      const clerk = defineAgent({ name: "clerk", model: scriptedModel("Noted.") });
      const runtime = await stage().open({ agents: [clerk] });
      const sessions = yamlSession(runtime, { directory });
      for (const number of Array(202).keys()) {
        const agent = await runtime.agent("clerk", { agentId: `desk-${number}` });
        await agent.start();
        await agent.executeTurn("Hello").result;
      }
      await (await runtime.find("desk-0")).executeTurn("Hello again").result;
      await sessions.close();
      const records = Object.values(recordsIn(directory));
      expect(records).toHaveLength(202);
      const turns = records.find(({ agent_id }) => agent_id === "desk-0")?.turns;
      expect(turns?.map(({ input }) => input)).toEqual(["Hello", "Hello again"]);
    });

    it("a folder that cannot be written is reported once and fails no turn", async () => {
      const warned = vi.spyOn(process, "emitWarning").mockReturnValue();
      const directory = join(temporaryFolder(), "\0");
      const runtime = await stage().open({ agents: [leadOfReaders()] });
      const sessions = yamlSession(runtime, { directory });
      const desk = await runtime.agent("lead", { agentId: "desk" });
      await desk.start();
      for (const input of ["one", "two"]) expect((await desk.executeTurn(input).result).status).toBe("completed");
      await sessions.close();
      expect(warned.mock.calls.map(([message]) => String(message))).toEqual([
        expect.stringMatching(/^a session file could not be written: /),
      ]);
      warned.mockRestore();
    });
  },
  ["memory"],
);
