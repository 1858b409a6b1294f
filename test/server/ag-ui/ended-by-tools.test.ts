// Turns that a tool or a subagent ends, in the official client of AG-UI: live and after a reload it shows the same messages.
import { EventType } from "@ag-ui/core";
import { agUiSurface } from "troupe/server";
import { describe, expect, it } from "vitest";
import { serveHandover } from "../handover-desk.ts";
import { resumeWith, Thread } from "./official-client.ts";

/** The texts that came as events of the agent itself, before any snapshot. */
function textsOf({ events }: Thread): readonly string[] {
  return events.flatMap((event) =>
    event.type === EventType.TEXT_MESSAGE_CONTENT && !("subagentRunId" in event && event.subagentRunId !== undefined)
      ? [event.delta]
      : [],
  );
}

async function reloaded(thread: Thread, one: Awaited<ReturnType<typeof serveHandover>>): Promise<readonly string[]> {
  const other = new Thread(one.server, { threadId: thread.client.threadId });
  await other.run();
  return other.shown();
}

describe.each([
  ["look", "It is in shelf 7.", true],
  ["hand over", "Ask the librarian.", false],
  ["both", "It is in shelf 7.", false],
])("%s", (said, text, isShownByEvents) => {
  it("is answered with a message as it happens, and the same after a reload", async () => {
    const one = await serveHandover(agUiSurface());
    const thread = new Thread(one.server);
    await thread.say(said);
    expect(textsOf(thread).at(-1)).toBe(text);
    const isShownBySnapshot = thread.types().includes("MESSAGES_SNAPSHOT");
    expect(isShownByEvents && isShownBySnapshot).toBe(false);
    expect(thread.shown().filter((line) => line === `assistant: ${text}`)).toHaveLength(1);
    expect(await reloaded(thread, one)).toEqual(thread.shown());
    await thread.say("thanks");
    expect(thread.shown().at(-1)).toBe("assistant: You said: thanks");
    expect(await reloaded(thread, one)).toEqual(thread.shown());
  });
});

it.each(["remove", "hand over to remove"])("%s is answered with the result once it is approved", async (said) => {
  const one = await serveHandover(agUiSurface());
  const thread = new Thread(one.server);
  await thread.say(said);
  await thread.run(resumeWith(thread, { approved: true }));
  expect(thread.outcome).toEqual({ success: [] });
  expect(textsOf(thread)).toEqual(["It is removed."]);
  expect(await reloaded(thread, one)).toEqual(thread.shown());
  expect(thread.shown().at(-1)).toBe("assistant: It is removed.");
});
