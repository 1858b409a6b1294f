import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { commandEnvironment, sourceCondition } from "../../scripts/run-command.ts";
import { createRuntime, defineAgent } from "../../src/index.ts";
import { bubblewrap, folder, shell, workspace } from "../../src/kit/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { emptyFolder, resultsOf } from "./kit-runs.ts";

/** Why this machine makes no sandbox; `undefined` if it does. */
const refusal = ((): string | undefined => {
  try {
    bubblewrap({ folder: "." });
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
})();

const run = (command: string, more: object = {}) => ({ name: "shell", arguments: { command, ...more } });

/** What commands give in a sandbox around this folder. */
async function inside(root: string, commands: readonly ReturnType<typeof run>[], options: object = {}) {
  const wrap = bubblewrap({ folder: root });
  return await resultsOf(commands, {
    plugins: [workspace(folder(root), { shell: { wrap, needsApproval: false, ...options } })],
  });
}

/** A command that leaves two processes with this name, one of them in a session of its own. */
const left = (name: string) => `setsid sh -c ': ${name}; sleep 61' & sh -c ': ${name}; sleep 62' & `;

/** The processes of this machine whose command has this text. */
function processesWith(text: string): string[] {
  return readdirSync("/proc").filter((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      return readFileSync(`/proc/${name}/cmdline`, "utf8").includes(text);
    } catch {
      return false;
    }
  });
}

describe.skipIf(refusal !== undefined)(`bubblewrap()${refusal === undefined ? "" : `, skipped: ${refusal}`}`, () => {
  test("commands work in the folder, and see nothing outside of it but the system, read-only", async () => {
    const root = emptyFolder();
    mkdirSync(join(root, "sub"));
    const outside = emptyFolder();
    writeFileSync(join(outside, "secret"), "canary");
    const port = await openPort();
    const results = await inside(root, [
      run("echo hi > sub/a 2>/dev/null; basename $PWD; cat sub/a; echo $HOME"),
      run("basename $PWD; cat a", { folder: "sub" }),
      run(`cat /etc/shadow ${outside}/secret ~/.. ${homedir()}/.bashrc; ls ${homedir()}; ls /proc | grep -c '^[0-9]'`),
      run(`echo x > ${outside}/new; touch /usr/bin/new /new-in-the-root`),
      run("mount -o remount,rw,bind /usr; touch /usr/troupe-new; umount -l /usr; grep CapEff /proc/self/status"),
      run(`(exec 3<>/dev/tcp/127.0.0.1/${port}) 2>&1; bash -c 'exec 3<>/dev/tcp/127.0.0.1/${port}' 2>&1`),
      run(`kill -9 ${process.pid}; kill -9 -1 2>&1; echo alive`),
    ]);
    expect(results[0]).toMatch(/hi\n\/tmp\n\[exit code 0\]$/);
    expect(results[1]).toBe("sub\nhi\n[exit code 0]");
    expect(results[2]).not.toContain("canary");
    expect(results[2]?.match(/No such file/g)?.length).toBeGreaterThanOrEqual(4);
    expect(results[3]).toContain("Read-only file system");
    expect(existsSync(join(outside, "new"))).toBe(false);
    expect(existsSync("/new-in-the-root")).toBe(false);
    expect(existsSync("/usr/troupe-new")).toBe(false);
    expect(results[4]).toContain("CapEff:\t0000000000000000");
    expect(results[5]).not.toContain("exit code 0");
    expect(readFileSync(join(root, "sub", "a"), "utf8")).toBe("hi\n");
  });

  test("its time, its output and an abort hold: no process is left, also of those that changed their group", async () => {
    const root = emptyFolder();
    const results = await inside(
      root,
      [run(`${left("one-canary")} echo started; sleep 63`), run(`${left("two-canary")} seq 1 100000`)],
      { timeoutMs: 1_000, maxOutputCharacters: 200 },
    );
    expect(results[0]).toBe("started\n[killed after 1000 ms]");
    expect(results[1]).toMatch(/^1\n2\n[^]*characters …\][^]*100000\n\[exit code 0\]$/);
    await vi.waitFor(() => expect([...processesWith("one-canary"), ...processesWith("two-canary")]).toEqual([]));

    const model = scriptedModel([{ toolCalls: [run(`${left("abort-canary")} echo > begun; sleep 64`)] }]);
    const tools = [shell({ needsApproval: false, folder: root, wrap: bubblewrap({ folder: root }) })];
    const runtime = await createRuntime({ agents: [defineAgent({ name: "clerk", model, tools })] });
    const agent = await runtime.agent("clerk");
    await agent.start();
    const turn = agent.executeTurn("Go.");
    await vi.waitFor(() => expect(existsSync(join(root, "begun"))).toBe(true));
    expect(processesWith("abort-canary").length).toBeGreaterThan(0);
    await turn.abort("enough");
    await turn.result;
    await runtime.shutdown();
    await vi.waitFor(() => expect(processesWith("abort-canary")).toEqual([]));
  });

  test("kill -9 of the program ends its commands", async () => {
    const root = emptyFolder();
    const program = fileURLToPath(new URL("sandboxed-program.ts", import.meta.url));
    const env = commandEnvironment({ NODE_OPTIONS: `--conditions=${sourceCondition}` });
    const child: ChildProcess = spawn(process.execPath, [program, root], { env, stdio: "inherit" });
    onTestFinished(() => void child.kill("SIGKILL"));
    await vi.waitFor(() => expect(existsSync(join(root, "begun"))).toBe(true), { timeout: 30_000, interval: 50 });
    expect(processesWith("killed-canary").length).toBeGreaterThan(0);
    child.kill("SIGKILL");
    await vi.waitFor(() => expect(processesWith("killed-canary")).toEqual([]), { timeout: 10_000 });
  }, 60_000);

  test("the network and further folders only if they are given", async () => {
    const root = emptyFolder();
    const shared = emptyFolder();
    writeFileSync(join(shared, "a"), "shared");
    const port = await openPort();
    const wrap = bubblewrap({ folder: root, network: true, read: [shared] });
    const [result] = await resultsOf(
      [run(`cat ${shared}/a; echo x > ${shared}/b; bash -c 'exec 3<>/dev/tcp/127.0.0.1/${port}' && echo connected`)],
      { tools: [shell({ folder: root, wrap, needsApproval: false })] },
    );
    expect(result).toContain("shared");
    expect(result).toContain("Read-only file system");
    expect(result).toContain("connected");
  });
});

async function openPort(): Promise<number> {
  const server = createServer((socket) => socket.destroy());
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  onTestFinished(() => void server.close());
  return (server.address() as { port: number }).port;
}

test("what cannot work is refused at the start, and nothing runs without the sandbox", () => {
  expect(() => bubblewrap({ folder: "./no-such-folder" })).toThrow("there is no folder");
  expect(() => bubblewrap({ folder: "/" })).toThrow("folder is the root of this machine");
  expect(() => bubblewrap({ folder: ".", read: ["/no-such-file"] })).toThrow("which does not exist");
  expect(() => bubblewrap({ folder: ".", net: true } as never)).toThrow("network");
  vi.stubEnv("PATH", emptyFolder());
  onTestFinished(() => void vi.unstubAllEnvs());
  expect(() => bubblewrap({ folder: "." })).toThrow("the program bwrap is not in PATH; install it");
  const refusing = emptyFolder();
  writeFileSync(
    join(refusing, "bwrap"),
    "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2; exit 1\n",
    {
      mode: 0o755,
    },
  );
  vi.stubEnv("PATH", refusing);
  expect(() => bubblewrap({ folder: "." })).toThrow("makes no sandbox: bwrap: No permissions to create new namespace");
});
