import { resolve } from "node:path";
import { InvalidInputError } from "../../errors/index.ts";
import { createRuntime } from "../../runtime/index.ts";
import { type AgentRecord, DEFAULT_TENANT } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import { budgetOf } from "../budget-options.ts";
import type { ChatOptions } from "../chat/chat-options.ts";
import { ChatSession } from "../chat/chat-session.ts";
import { type CliContext, commandLine } from "../cli-context.ts";
import { type ExitCode, exitCodes } from "../failure.ts";
import type { SessionLink } from "../dev/session-link.ts";
import { chosenFirst, loadAgentFile } from "../job/agent-file.ts";
import { freshId } from "../job/find-agent.ts";
import { ChatInterrupts, timingOf } from "../job/interrupts.ts";
import { jobOfFile, type Job } from "../job/job.ts";
import { pageLines, startInspection } from "../job/inspection.ts";
import { assertGetsTools, mcpWords, pathOf, withMcpTools } from "../mcp/mcp-tools.ts";
import { keptOpen, storeLocation, withStore } from "../job/store-location.ts";

/**
 * Runs a conversation with an agent from a file: a new agent, or the named one. `link`: the parent process, if the chat is that of
 * `troupe dev`.
 */
export async function chatCommand(
  context: CliContext,
  file: string,
  options: ChatOptions,
  link?: SessionLink,
): Promise<ExitCode> {
  const store = storeLocation(context, options);
  const { agentId, agent: name, mcp } = options;
  const agentFile = await withMcpTools(
    context,
    await loadAgentFile(file, context.directory, { loaded: () => link?.files ?? [] }),
    mcp,
  );
  // Checks the name before a store is created.
  if (agentId === undefined) chosenFirst(agentFile, file, { name });
  return await withStore(store, "open", async (stores) => {
    const rootAgentId = agentId ?? (await freshId(stores, "chat"));
    const known = await stores.readAgent({ tenant: DEFAULT_TENANT, agentId: rootAgentId });
    const agents = chosenFirst(agentFile, file, { name, known });
    assertGetsTools(agentFile, agents[0], mcp);
    assertGoesOn(file, agents[0].name, known);
    link?.loaded();
    const { mayDecide } = agentFile;
    const work = { file: resolve(context.directory, file), agents, input: "", mayDecide, mcp: pathOf(context, mcp) };
    const job = jobOfFile(context, work, { rootAgentId, store, isResumed: known !== undefined });
    const metadata = { ...job.metadata, command: "chat" };
    const words = [file, "--agent-id", rootAgentId, ...(name === undefined ? [] : ["--agent", name]), ...mcpWords(mcp)];
    const comeBack = commandLine(context.invocation, link === undefined ? "chat" : "dev", [...words, ...store.words]);
    const chat = {
      isKnown: known !== undefined,
      comeBack,
      job: { ...job, metadata: known?.metadata ?? metadata, budget: budgetOf(options) },
      link,
    };
    // In a file, only this process knows the answers that are being written.
    const isOwnFile = link !== undefined && store.file !== undefined;
    return await runChat(context, isOwnFile ? { ...stores, live: link.live } : stores, chat, options);
  });
}

interface Chat {
  readonly job: Job;
  readonly isKnown: boolean;
  readonly comeBack: string;
  readonly link: SessionLink | undefined;
}

/** Throws `InvalidInputError` if the conversation belongs to an agent that the file no longer has. */
function assertGoesOn(file: string, name: string, known: AgentRecord | undefined): void {
  if (known === undefined || known.definition.name === name) return;
  throw new InvalidInputError(
    `${known.agentId} is a conversation with "${known.definition.name}", which ${file} does not export; name the agent so again, or begin a new conversation without --agent-id`,
  );
}

async function runChat(context: CliContext, stores: Stores, chat: Chat, options: ChatOptions): Promise<ExitCode> {
  const { note } = context;
  const { link } = chat;
  // A new chat is stored only with its first message.
  const inspector = await startInspection(options, chat.isKnown ? chat.job.rootAgentId : undefined);
  if (inspector) pageLines(inspector).forEach(note);
  const runtime = await createRuntime({
    agents: chat.job.agents,
    stores: keptOpen(stores),
    mayDecide: chat.job.mayDecide,
    // Other jobs of the store may have been left unfinished on purpose.
    recovers: "own",
    showCosts: true,
    streaming: inspector || link ? "always" : undefined,
  });
  inspector?.watch(runtime);
  const interrupts = new ChatInterrupts({
    abort: () =>
      session.say(
        session.abort() ? "Aborting; press Ctrl-C again to leave." : "Press Ctrl-C again, or Ctrl-D, to leave.",
      ),
    leave(exitCode) {
      for (const line of [`Left at once; resume with: ${chat.comeBack}`, ...chat.job.store.remarks]) note(line);
      link?.left(exitCode);
      process.exit(exitCode);
    },
  });
  const session = new ChatSession({
    context,
    runtime,
    ...chat,
    onInterrupt: () => interrupts.interrupt(),
    onTyped: () => {
      interrupts.typed();
      link?.taken();
    },
  });
  const timing = timingOf(context);
  // The parent passes on the Ctrl-C that the terminal may have sent to both.
  const stopWatching = interrupts.watch(process, link ? { ...timing, isForwarded: true } : timing);
  link?.ready({ runtime, suspend: (reason) => session.suspend(reason), draft: () => session.draft() });
  // Neither the runtime's timers nor an ended pipe keep the process alive.
  const alive = setInterval(() => {}, 60_000);
  try {
    const ended = session.run();
    // Once drained, the conversation does not have to notice it.
    return link === undefined ? await ended : ((await Promise.race([ended, link.drained])) ?? exitCodes.success);
  } finally {
    clearInterval(alive);
    stopWatching();
    await runtime.shutdown();
    await inspector?.close();
  }
}
