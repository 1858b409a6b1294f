import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { createRuntime, defineAgent, textOf } from "../../src/index.ts";
import { artifactFiles, folder, shell, type ShellToolOptions, workspace } from "../../src/kit/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { emptyFolder, resultsOf } from "./kit-runs.ts";

const run = (command: string, more: object = {}) => ({ name: "shell", arguments: { command, ...more } });
const through = async (commands: readonly ReturnType<typeof run>[], options: ShellToolOptions = {}) =>
  await resultsOf(commands, { tools: [shell({ needsApproval: false, folder: emptyFolder(), ...options })] });

describe("shell()", () => {
  test("shows both outputs and the exit code, and starts in the folder", async () => {
    const root = emptyFolder();
    mkdirSync(join(root, "sub"));
    const results = await through(
      [
        run("echo out; echo err >&2; exit 3"),
        run("true"),
        run("basename $PWD", { folder: "sub" }),
        run("cat"),
        run("kill -TERM $$"),
      ],
      { folder: root },
    );
    expect(results).toEqual([
      "out\nerr\n[exit code 3]",
      "[exit code 0, no output]",
      "sub\n[exit code 0]",
      "[exit code 0, no output]",
      "[ended by SIGTERM, no output]",
    ]);
  });

  test("a folder outside is refused, and nothing runs", async () => {
    const root = emptyFolder();
    const results = await through(
      [run("touch x", { folder: ".." }), run("touch x", { folder: "/" }), run("touch x\0")],
      {
        folder: root,
      },
    );
    expect(results[0]).toContain('it contains ".."');
    expect(results[1]).toContain("it is absolute");
    expect(results[2]).toContain("NUL");
    expect(existsSync(join(root, "x"))).toBe(false);
  });

  test("a command gets no variable of the process that was not named", async () => {
    vi.stubEnv("KIT_SECRET", "canary");
    vi.stubEnv("KIT_NAMED", "named");
    const [shown] = await through([run("env")], { passEnvironment: ["KIT_NAMED"], environment: { OWN: "own" } });
    vi.unstubAllEnvs();
    expect(shown).not.toContain("canary");
    expect(shown).toContain("KIT_NAMED=named");
    expect(shown).toContain("OWN=own");
  });

  test("after its time the whole process group is killed, also what it left in the background", async () => {
    const root = emptyFolder();
    const left = "(while :; do echo x >> ticks; sleep 0.02; done) >/dev/null 2>&1 &";
    const results = await through([run(`${left} echo started; sleep 60`), run(`rm -f ticks; ${left} echo over`)], {
      folder: root,
      timeoutMs: 500,
    });
    expect(results[0]).toBe("started\n[killed after 500 ms]");
    expect(results[1]).toBe("over\n[exit code 0]");
    const ticks = () => (existsSync(join(root, "ticks")) ? readFileSync(join(root, "ticks"), "utf8").length : 0);
    const before = ticks();
    await through([run("sleep 0.1")]);
    expect(ticks()).toBe(before);
  });

  test("of a long output the beginning and the end are kept", async () => {
    const [shown] = await through([run("seq 1 200000")], { maxOutputCharacters: 200 });
    expect(shown).toMatch(/^1\n2\n3\n[^]*\n\[… \d+ characters …\]\n[^]*199999\n200000\n\[exit code 0\]$/);
    expect(shown?.length).toBeLessThan(300);
  });

  test("the wrapper runs the shell; one that is missing is named at the start", async () => {
    const wrapper = join(emptyFolder(), "wrapper");
    writeFileSync(wrapper, '#!/bin/sh\necho "wrapped by $1"; shift; exec "$@"\n', { mode: 0o755 });
    const [shown] = await through([run("echo inside")], { wrap: [wrapper, "test"] });
    expect(shown).toBe("wrapped by test\ninside\n[exit code 0]");
    expect(() => shell({ wrap: ["no-such-sandbox", "--all"] })).toThrow(
      /the program "no-such-sandbox" of wrap is not in PATH; install it/,
    );
    expect(() => shell({ wrap: [join(emptyFolder(), "x")] })).toThrow(/does not exist or cannot be run/);
  });

  test("waits for a person unless it is told not to, who sees the whole command", async () => {
    const root = emptyFolder();
    const model = scriptedModel([{ toolCalls: [run("touch approved\u202E")] }, "Done."]);
    const runtime = await createRuntime({
      agents: [defineAgent({ name: "clerk", model, plugins: [workspace(folder(root), { shell: true })] })],
    });
    const agent = await runtime.agent("clerk");
    await agent.start();
    const turn = agent.executeTurn("Go.");
    await turn.settled;
    const [request] = await agent.requests();
    expect(request).toMatchObject({ kind: "approval", prompt: "Run: touch approved" });
    expect(existsSync(join(root, "approved\u202E"))).toBe(false);
    await runtime.decide(request?.requestId ?? "", { verdict: "rejected", reason: "no" });
    expect((await turn.result).text).toBe("Done.");
    const results = (await agent.getMessages()).filter(({ role }) => role === "tool");
    expect(results.map(({ content }) => textOf(content))).toEqual(["Rejected by user: no"]);
    await runtime.shutdown();
  });

  test("an abort of the turn kills the command", async () => {
    const root = emptyFolder();
    const model = scriptedModel([{ toolCalls: [run("echo $$ > pid; exec sleep 60")] }]);
    const tools = [shell({ needsApproval: false, folder: root })];
    const runtime = await createRuntime({ agents: [defineAgent({ name: "clerk", model, tools })] });
    const agent = await runtime.agent("clerk");
    await agent.start();
    const turn = agent.executeTurn("Go.");
    await vi.waitFor(() => expect(readFileSync(join(root, "pid"), "utf8")).toMatch(/\d\n/));
    const pid = Number(readFileSync(join(root, "pid"), "utf8"));
    await turn.abort("enough");
    await turn.result;
    await runtime.shutdown();
    await vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow(/ESRCH/));
  });

  test("files that are artifacts have no shell", () => {
    expect(() => workspace(artifactFiles(), { shell: true })).toThrow("a workspace of artifactFiles() has no shell");
  });
});
