/** What stands below the options in each `--help`. */

const exitCodes = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 stopped by a budget, 130 interrupted.";

export const program = `
Examples:
  $ npx troupe ask --question "How are retries handled?" --files ./docs
  $ npx troupe run ./my-agent.ts "Summarise the news"
  $ npx troupe list

In a clone of the project: npm start -- --question "…", and npm run troupe -- list.

${exitCodes}
TROUPE_DEBUG=1 shows the stack of an error, NO_COLOR=1 takes the colours away.
`;

export const ask = `
Examples:
  $ npx troupe ask
  $ npx troupe ask --question "Which options does it take?" --files ./docs
  $ npx troupe ask --question "Who is the treasurer?" --files ./notes --quiet
  $ npx troupe ask --resume

Ctrl-C pauses at a safe point, a second Ctrl-C leaves at once; --resume carries on after either, and after a crash.
Nothing that was answered is asked or paid for again.

Environment:
  OPENAI_API_KEY        key of the model server; without one the rule-based offline engine answers
  OPENAI_BASE_URL       another server that speaks the Chat Completions protocol
  TROUPE_OFFLINE_SPEED  slows the offline engine down to so many tokens a second, to watch it

${exitCodes}
`;

export const run = `
Examples:
  $ npx troupe run ./my-agent.ts "Summarise the news"
  $ npx troupe run ./my-agent.ts "And in one sentence?" --agent-id run-mibodu
  $ npx troupe run ./team.ts "Compare both" --agent lead --json

The file exports a definition made by defineAgent, as default or as "agent", or several as "agents".

${exitCodes}
`;

export const list = `
Examples:
  $ npx troupe list
  $ npx troupe list --store ./jobs.db --json
`;

export const show = `
Examples:
  $ npx troupe show ask-mibodu
  $ npx troupe show ask-mibodu~3fa9c1 --full
  $ npx troupe show ask-mibodu --json
`;

export const resume = `
Examples:
  $ npx troupe resume
  $ npx troupe resume ask-mibodu
  $ npx troupe resume desk-7 --store ./jobs.db --agents ./my-agent.ts

Questions and agents started with "run" are found by themselves; for others name the file with --agents.

${exitCodes}
`;

export const abort = `
Examples:
  $ npx troupe abort ask-mibodu
  $ npx troupe abort ask-mibodu --reason "wrong folder"

The store keeps the wish: a process that runs the agent hears of it within moments, otherwise whoever resumes it does.
`;
