// A conversation over a pipe: each line is a message, a command, or the reply to a request.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { first, inFull, rows } from "../support/full.ts";
import { askingAgents, paidIn } from "./asking-agents.ts";
import { runCli, runCliWith, startCli, workFolder } from "./cli-process.ts";

let folder: ReturnType<typeof workFolder>;
beforeEach(() => {
  folder = workFolder(askingAgents);
});
afterEach(() => folder.remove());

const chat = ["chat", "till.mjs", "--agent-id", "till"];

function talk(...lines: readonly string[]) {
  return runCliWith(folder.path, lines, chat);
}

describe("troupe chat", () => {
  test("talks over many turns, asks for approvals and answers inline, and ends with its input", async () => {
    const { code, stdout, stderr } = await talk(
      "Hello",
      "pay Ann 5, ask Which day?",
      "on Friday",
      "perhaps",
      "y",
      "pay Bo 6",
      "n too much",
      "/requests",
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain("> Hello\nmessage 1\n");
    expect(stdout).toContain("Type y, n, e or l.\n");
    expect(stdout).toContain("paid 5 to Ann; on Friday\n");
    expect(stdout).toContain("Rejected by user: too much\n");
    expect(stdout).toContain("Nothing waits for a decision or an answer.\n");
    expect(stdout).toMatch(/Resume with: .*main\.ts chat till\.mjs --agent-id till\n$/);
    expect(paidIn(folder.path)).toEqual(["Ann 5"]);
  });

  inFull(() => {
    test("continues a conversation by its id, and shows a short history", async () => {
      await talk("Hello");
      const { stdout } = await talk("Again", "/tree", "/budget");
      expect(stdout).toMatch(/^you: Hello\nagent: message 1\n> Again\nmessage 2\n/m);
      expect(stdout).toMatch(/^chief till +- +2 +2 +0 /m);
      expect(stdout).toMatch(/^chief till, turn 2 /m);
      expect((await runCli(folder.path, ["list"])).stdout).toMatch(/till +chief +finished +2 +0 .*\(chat\)/);
    });

    test("leaves nothing behind if no message was sent", async () => {
      const { code, stdout } = await talk(
        "/help",
        "/tree",
        "/pause",
        "/resume",
        "/abort",
        "/nope",
        "",
        "/exit",
        "Hello",
      );
      expect(code).toBe(0);
      expect(stdout).toContain("/budget ");
      expect(stdout).toContain("There is no command /nope");
      expect(stdout).not.toContain("message 1");
      expect((await runCli(folder.path, ["list"])).stdout).toBe("There are no agents in ./.troupe/ask.db.\n");
    });

    test("that ends during a request exits with 4, and the next chat asks again", async () => {
      const first = await talk("pay Ann 5");
      expect(first.code).toBe(4);
      expect(first.stdout).toMatch(/main\.ts approve till#1:1:0:1\n/);
      const later = await talk("l", "Hello", "/requests", "e", '{"to":"Cy","amount":1}');
      expect(later.code).toBe(0);
      expect(later.stdout).toContain("1 request left open. /requests asks again, /abort ends the turn.\n");
      expect(later.stdout).toContain("Not sent: the last turn is still ");
      expect(paidIn(folder.path)).toEqual(["Cy 1"]);
    });

    test("/pause holds the turn beyond the end of the process, /resume continues it, /abort ends it", async () => {
      const paused = await talk("pay Ann 5", "/pause", "l", "/exit");
      expect(paused.code).toBe(130);
      const resumed = await talk("/resume", "y", "pay Bo 6", "/abort", "Hello");
      expect(resumed.stdout).toContain("paid 5 to Ann\n");
      expect(resumed.stdout).toContain("aborted in the chat by");
      expect(resumed.stdout).toContain("> Hello\nmessage 3\n");
      expect(paidIn(folder.path)).toEqual(["Ann 5"]);
    });

    test("the exit code of a pipe is that of its last turn", async () => {
      expect((await talk("pay Ann 5", "/abort")).code).toBe(130);
    });
  });

  test("Ctrl-C aborts the open turn; after a message it counts as the first again; twice exits", async () => {
    const talking = startCli(folder.path, chat, {}, true);
    talking.type("ask Which day?");
    await talking.line((line) => line.includes("chief till asks"));
    talking.signal("SIGINT");
    await talking.line((line) => line.startsWith("Stopped: user_requested"));
    talking.type("ask Which week?");
    await talking.line((line) => line.includes("(till#2:1:0:1):"));
    talking.signal("SIGINT");
    await talking.line((line) => line.includes("Stopped: user_requested, aborted in the chat"));
    const leave = setInterval(() => talking.signal("SIGINT"), 50);
    const { code, stderr } = await talking.ended;
    clearInterval(leave);
    expect(code).toBe(130);
    expect(stderr).toMatch(/Left at once; resume with: .*chat till\.mjs --agent-id till\n$/);
  });

  test.each(
    rows(
      [
        [["chat", "none.mjs"], "there is no file none.mjs"],
        [["chat", "till.mjs", "--agent", "other"], 'till.mjs exports no agent "other"'],
        [["chat"], "missing required argument 'file'"],
      ],
      first,
    ),
  )("%j is wrong usage", async (words, message) => {
    const { code, stderr } = await runCli(folder.path, words);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });
});
