import { existsSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { createInterface } from "node:readline";
import { InvalidInputError } from "../../errors/index.ts";
import { Feed, serveFeed, storeActor } from "../../inspector/index.ts";
import { DEFAULT_TENANT } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import { type CliContext, commandLine, userName } from "../cli-context.ts";
import type { SessionMessage, TypedMessage } from "../dev/dev-messages.ts";
import type { ChatOptions } from "../chat/chat-options.ts";
import { InspectorLiveChannel } from "../dev/live-channels.ts";
import { remoteActor } from "../dev/remote-actor.ts";
import { type SessionEnd, SessionProcess } from "../dev/session-process.ts";
import { WatchedFiles } from "../dev/watched-files.ts";
import type { ExitCode } from "../failure.ts";
import { assertAgentFile } from "../job/agent-file.ts";
import { freshId } from "../job/find-agent.ts";
import { pageLines } from "../job/inspection.ts";
import { onSignals, timingOf } from "../job/interrupts.ts";
import { type StoreLocation, storeLocation, withStore } from "../job/store-location.ts";
import { mcpWords, pathOf } from "../mcp/mcp-tools.ts";
import { formatNumberOf } from "../view/format.ts";
import { openBrowser } from "./inspect.ts";

export interface DevOptions extends Omit<ChatOptions, "inspect" | "stately"> {
  /** Whether the inspector is served. */
  readonly inspect: boolean;
  readonly port?: number | undefined;
  readonly open?: boolean | undefined;
  /** Files to watch beside those that the agent file imports. */
  readonly watch?: readonly string[] | undefined;
  readonly drainSeconds?: number | undefined;
}

/** A person waits for each restart, so this is shorter than the drain of servers. */
const usualDrainSeconds = 5;

/** After this many milliseconds a person is told that the file is still loading. */
const SLOW_LOAD_MS = 10_000;

/**
 * Talks with an agent whose code is being written: its process is replaced at each change, and the next one continues the conversation and
 * the open turn from the store. Returns the exit code of the conversation.
 */
export async function devCommand(context: CliContext, file: string, options: DevOptions): Promise<ExitCode> {
  const { directory, note } = context;
  const location = storeLocation(context, options);
  if (location.name === ":memory:") {
    throw new InvalidInputError(
      "--store :memory: ends with each process, so nothing would be left after a reload; give a file, or leave it out",
    );
  }
  assertAgentFile(file, directory);
  const files = new WatchedFiles(filesBeside(context, file, options));
  return await withStore(location, "open", async (stores) => {
    const agentId = options.agentId ?? (await freshId(stores, "chat"));
    const dev = new Dev(context, { file, options, agentId, files });
    const page = options.inspect ? await startPage(dev, { stores, location, options }) : undefined;
    if (page !== undefined) pageLines({ url: page.url, statelyUrl: undefined }).forEach(note);
    if (page !== undefined && options.open === true) openBrowser(page.url);
    try {
      return (await dev.run()) as ExitCode;
    } finally {
      await page?.close();
    }
  });
}

/** Absolute paths of the files that belong to the agent but are not imported, whether or not they exist. */
function filesBeside(context: CliContext, file: string, { mcp, watch = [] }: DevOptions): readonly string[] {
  const path = resolve(context.directory, file);
  const given = watch.map((one) => {
    const watched = resolve(context.directory, one);
    if (existsSync(watched)) return watched;
    throw new InvalidInputError(`there is no file ${one}; give --watch the path of a file`);
  });
  const folders = new Set([context.directory, dirname(path)]);
  const variables = [...folders].flatMap((folder) => [".env", ".env.local"].map((name) => join(folder, name)));
  const servers = pathOf(context, mcp) ?? [];
  return [...new Set([path, ...variables, servers, ...given].flat())];
}

interface Page {
  readonly url: string;
  close(): Promise<void>;
}

async function startPage(
  dev: Dev,
  {
    stores,
    location,
    options,
  }: { readonly stores: Stores; readonly location: StoreLocation; readonly options: DevOptions },
): Promise<Page> {
  const isKnown = (await stores.readAgent({ tenant: DEFAULT_TENANT, agentId: dev.agentId })) !== undefined;
  const feed = new Feed({ run: isKnown ? dev.agentId : undefined });
  const queues = await location.openQueues?.();
  feed.add({
    // Servers carry the text of answers by themselves.
    stores: location.file === undefined ? stores : { ...stores, live: dev.live },
    tenant: DEFAULT_TENANT,
    queues,
    isWritten: location.file === undefined ? undefined : true,
    actor: remoteActor(() => dev.readySession, {
      stored: storeActor({ stores, tenant: DEFAULT_TENANT, by: userName() }),
      whyNot: () => `${dev.file} is not running: it is being started, or waits for a change; see the terminal`,
    }),
  });
  const server = await serveFeed(feed, { port: options.port, mayAct: true });
  return {
    url: server.url,
    async close() {
      await server.close();
      await queues?.close();
    },
  };
}

interface DevSetup {
  readonly file: string;
  readonly options: DevOptions;
  readonly agentId: string;
  readonly files: WatchedFiles;
}

/**
 * One conversation over the processes that run it, one after the other.
 * Owns: what the person has typed and no process has stored; the lines of a pipe; when a process is replaced. Does not own: the store, the
 * terminal.
 *
 * Invariants
 * 1. At most one process runs at a time.
 * 2. A typed message is given to the next process until a process has stored it; its key makes it one message.
 * 3. A process is started only by a change, at the beginning, or once after it died. So nothing that dies at its start is started in a loop.
 */
class Dev {
  readonly agentId: string;
  readonly file: string;
  readonly live = new InspectorLiveChannel((message) => this.#session?.send(message));
  readonly #context: CliContext;
  readonly #setup: DevSetup;
  readonly #isTerminal: boolean;
  readonly #unsent = new Map<string, TypedMessage>();
  readonly #stop = Promise.withResolvers<number>();
  #draft = "";
  #session: SessionProcess | undefined;
  #isDraining = false;
  /** Deaths since the last change and the last typed line. */
  #deaths = 0;
  #cutOff = 0;
  #exitCode: number | undefined;
  /** Whether a process has introduced the conversation. */
  #isIntroduced = false;
  #pipe: { readonly close: () => void; readonly lines: AsyncIterator<string> } | undefined;
  #line: Promise<IteratorResult<string>> | undefined;
  readonly #unread: string[] = [];

  constructor(context: CliContext, setup: DevSetup) {
    this.#context = context;
    this.#setup = setup;
    this.agentId = setup.agentId;
    this.file = setup.file;
    this.#isTerminal = context.stdin.isTTY && context.stdout.isTTY;
  }

  get readySession(): SessionProcess | undefined {
    return this.#session?.isReady === true && !this.#isDraining ? this.#session : undefined;
  }

  /** Runs until the person leaves or a signal ends it. Returns the exit code. */
  async run(): Promise<number> {
    const stopWatching = onSignals(process, timingOf(this.#context), (signal, exitCode) => {
      // The conversation decides what Ctrl-C means; the terminal may have told it too.
      if (signal === "SIGINT" && this.readySession !== undefined) this.readySession.interrupt();
      else this.#end(exitCode);
    });
    // A process that waits for a change has nothing else to do.
    const alive = setInterval(() => {}, 60_000);
    try {
      for (let isFirst = true; ; isFirst = false) {
        const exitCode = await this.#one(isFirst);
        if (exitCode !== undefined) return exitCode;
      }
    } finally {
      clearInterval(alive);
      stopWatching();
      // An open pipe would keep this process alive.
      this.#pipe?.close();
    }
  }

  #end(exitCode: number): void {
    this.#exitCode = exitCode;
    this.#stop.resolve(exitCode);
  }

  /** Runs one process and returns when the next one is to start, or with the exit code. */
  async #one(isFirst: boolean): Promise<number | undefined> {
    const { files } = this.#setup;
    files.reset();
    const session = this.#start();
    const looking = new AbortController();
    const slow = setTimeout(() => this.#tellSlow(session), SLOW_LOAD_MS);
    try {
      const change = files.changed(looking.signal);
      const end = await Promise.race([session.ended, change, this.#stop.promise]);
      if (typeof end === "object") return await this.#afterEnd(end, { isFirst, change });
      await this.#replace(session, end);
      if (this.#exitCode !== undefined) this.#tellComeBack();
      return this.#exitCode;
    } finally {
      clearTimeout(slow);
      looking.abort();
    }
  }

  #start(): SessionProcess {
    const { file, options, agentId } = this.#setup;
    const { inspect: _page, port: _port, open: _open, watch = [], drainSeconds: _seconds, ...chat } = options;
    const start = {
      file,
      options: { ...chat, agentId },
      isFirst: !this.#isIntroduced,
      otherFiles: watch.length,
      draft: this.#draft,
      unsent: [...this.#unsent.values()],
      followed: this.live.followed,
    };
    this.#draft = "";
    this.#cutOff = 0;
    this.#isDraining = false;
    const session = new SessionProcess({
      context: this.#context,
      start,
      isTerminal: this.#isTerminal,
      take: (message) => this.#take(message),
    });
    this.#session = session;
    return session;
  }

  #take(message: SessionMessage): void {
    switch (message.type) {
      case "file":
        return this.#setup.files.add(message.path, message.fingerprint);
      case "draft":
        this.#draft = message.text;
        this.#unread.unshift(...message.unread);
        return;
      case "drained":
        this.#cutOff = message.left;
        return;
      case "ready":
        this.#isIntroduced = true;
        return;
      case "taken":
        this.#deaths = 0;
        return;
      case "sending":
        this.#unsent.set(message.message.key, message.message);
        return;
      case "sent":
        this.#unsent.delete(message.key);
        return;
      case "next":
        return void this.#passLine(this.#session);
      case "live":
        return this.live.take(message.tree, message.message);
      default:
    }
  }

  /** Gives the next line of the pipe to the process that asks, unless it is being replaced: the next one asks again. */
  async #passLine(session: SessionProcess | undefined): Promise<void> {
    if (session === undefined || session !== this.readySession) return;
    const kept = this.#unread.shift();
    if (kept !== undefined) return session.send({ type: "line", line: kept });
    this.#pipe ??= openedPipe(this.#context);
    this.#line ??= this.#pipe.lines.next();
    const line = this.#line;
    const read = await line;
    if (this.#line !== line || session !== this.readySession) return;
    this.#line = undefined;
    session.send({ type: "line", line: read.done === true ? null : read.value });
  }

  async #afterEnd(
    end: SessionEnd,
    { isFirst, change }: { readonly isFirst: boolean; readonly change: Promise<string | undefined> },
  ): Promise<number | undefined> {
    const { note } = this.#context;
    if (end.type === "left") return end.exitCode;
    if (end.type === "failed" && isFirst && !end.isFile) {
      note(end.text);
      return end.exitCode;
    }
    if (end.type === "died") {
      this.#deaths += 1;
      const died = `${this.file} ended its process (${end.how})`;
      if (this.#deaths === 1 && end.wasReady) {
        note(`${died}; it is started again, and continues the open turn.`);
        return undefined;
      }
      note(end.wasReady ? `${died} again.` : `${died} while it was loaded.`);
    } else note(end.text);
    note("Waiting for a change; Ctrl-C leaves.");
    const next = await Promise.race([change, this.#stop.promise]);
    this.#deaths = 0;
    return typeof next === "number" ? next : undefined;
  }

  /** Ends a process at a safe point, because of a changed file or a signal. */
  async #replace(session: SessionProcess, why: string | number | undefined): Promise<void> {
    const { options } = this.#setup;
    const { note, directory } = this.#context;
    const seconds = options.drainSeconds ?? usualDrainSeconds;
    const changed = typeof why === "string" ? `${relative(directory, why)} has changed` : "A signal ends this process";
    this.#isDraining = true;
    this.#deaths = 0;
    const second = onSignals(process, timingOf(this.#context), () => session.kill());
    const isInTime = await session.drain(
      seconds * 1_000,
      `${changed}: the turn stops at its next safe point, within ${seconds} s.`,
    );
    second();
    if (!isInTime) {
      note(`${this.file} did not stop within ${seconds} s and was ended; what is safe to repeat is repeated.`);
    } else if (this.#cutOff > 0) {
      note(
        `${formatNumberOf(this.#cutOff, "call")} did not end within ${seconds} s: a model call and a tool that is safe to repeat run again, a tool of class once ends as outcome_unknown.`,
      );
    }
  }

  /** As the conversation does when the person leaves it. */
  #tellComeBack(): void {
    const { mcp, agent } = this.#setup.options;
    const words = [this.file, "--agent-id", this.agentId, ...(agent === undefined ? [] : ["--agent", agent])];
    const location = storeLocation(this.#context, this.#setup.options);
    this.#context.note(
      `Resume with: ${commandLine(this.#context.invocation, "dev", [...words, ...mcpWords(mcp), ...location.words])}`,
    );
    location.remarks.forEach(this.#context.note);
  }

  #tellSlow(session: SessionProcess): void {
    if (session.isReady || this.#session !== session) return;
    this.#context.note(
      `${this.file} is still being loaded after ${SLOW_LOAD_MS / 1_000} s; it may wait for something at its top level. A change starts it anew.`,
    );
  }
}

function openedPipe({ stdin }: CliContext): { readonly close: () => void; readonly lines: AsyncIterator<string> } {
  const readline = createInterface({ input: stdin });
  return { close: () => readline.close(), lines: readline[Symbol.asyncIterator]() };
}
