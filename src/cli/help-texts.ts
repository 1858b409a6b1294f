/** The texts below the options of each `--help`. */

const exitCodes =
  "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 stopped by a budget, 4 waits for a decision, 130 interrupted.";

export const program = `
Examples:
  $ npx troupe init my-agent
  $ npx troupe ask --question "How are retries handled?" --files ./docs
  $ npx troupe run ./my-agent.ts "Summarise the news"
  $ npx troupe chat ./my-agent.ts
  $ npx troupe dev ./my-agent.ts
  $ npx troupe requests
  $ npx troupe list
  $ npx troupe serve ./my-agent.ts
  $ npx troupe worker --agents ./my-agent.ts --redis redis://127.0.0.1:6379

In a clone of the project: npm start -- --question "…", and npm run troupe -- list.

${exitCodes}
Every command accepts --store PATH, --store postgres://… or --redis URL; TROUPE_REDIS sets the address of Redis for all of
them. With Postgres, workers have their queues there, or in a Redis beside it.
TROUPE_DEBUG=1 shows the stack of an error, NO_COLOR=1 turns colours off.
`;

export const ask = `
Examples:
  $ npx troupe ask
  $ npx troupe ask --question "Which options does it take?" --files ./docs
  $ npx troupe ask --question "Who is the treasurer?" --files ./notes --quiet
  $ npx troupe ask --question "What changed?" --files ./notes --max-cost 0.10
  $ npx troupe ask --resume

Ctrl-C pauses at a safe point, a second Ctrl-C leaves at once. --resume continues after either, and after a crash;
answers that arrived are not requested or paid for again.

Environment:
  OPENAI_API_KEY        key of the model server; without one the rule-based offline engine answers
  OPENAI_BASE_URL       another server with the Chat Completions protocol
  TROUPE_OFFLINE_SPEED  limits the offline engine to this many tokens per second
  TROUPE_REDIS          address of Redis, if neither --redis nor --store is given

${exitCodes}
`;

export const run = `
Examples:
  $ npx troupe run ./my-agent.ts "Summarise the news"
  $ git diff | npx troupe run ./my-agent.ts -
  $ npx troupe run ./my-agent.ts "And in one sentence?" --agent-id run-mibodu
  $ npx troupe run ./team.ts "Compare both" --agent lead --json
  $ npx troupe run ./team.ts "Compare both" --max-cost 0.50 --deadline 15m

The file exports a definition from defineAgent as default or as "agent", or several as "agents": then --agent names
one, unless all others are its subagents. If only some people may decide their requests, it also exports the rule as
"mayDecide".

${exitCodes}
`;

export const chat = `
Examples:
  $ npx troupe chat ./my-agent.ts
  $ npx troupe chat ./my-agent.ts --agent-id desk-7
  $ printf 'Pay Ann.\\ny\\n' | npx troupe chat ./my-agent.ts

A line is a message; while a turn runs on a terminal, its next model call sees it. /help shows the commands. The agent's requests are asked here: answer approvals with y, n <why>, e <json> or
l for later. Ctrl-C aborts the open turn, a second one leaves; Ctrl-D leaves. From a pipe each line is a message, or the
reply to the request before it; the exit code is the last turn's.

${exitCodes}
`;

export const dev = `
Examples:
  $ npx troupe dev ./src/agent.ts
  $ npx troupe dev ./src/agent.ts --open --watch ./prompt.md
  $ npx troupe dev ./src/agent.ts --agent-id desk-7 --store ./dev.db

A chat and an inspector. When the file, a file that it imports, .env or a --watch file is saved, the turn stops at its next safe point and the
agent is loaded anew; conversation, open turn, open requests and the half-typed line go on. A file that cannot be loaded shows its error
and waits for the next save, and so does an agent that ends its process twice. /help shows the commands of the chat; Ctrl-C aborts
the open turn, a second one leaves; Ctrl-D leaves.

${exitCodes}
`;

export const init = `
Examples:
  $ npx troupe init my-agent
  $ npx troupe init shop/desk --template team
  $ npm create troupe@latest my-agent -- --template hono

Templates: agent (one agent with a tool), team (a subagent and an approval), workers (over Redis), hono and next (HTTP routes).
On a terminal the name and the template are asked for if they are missing; elsewhere, and with --yes, the defaults are taken.
The project is written to a new or empty folder, completely or not at all. Nothing is installed.
`;

export const schema = `
Examples:
  $ npx troupe schema
  $ npx troupe schema mcp-config > mcp.schema.json
  $ npx troupe schema --out .vscode/schemas
  $ npx troupe schema ./my-agent.ts --agent desk

An agent file is loaded, which runs its code. Of its agents the schemas of the input, the typed output and the arguments of the tools
are printed as JSON: a list of all agents, or the one of --agent.
`;

export const worker = `
Examples:
  $ npx troupe worker --agents ./team.ts --redis redis://127.0.0.1:6379
  $ npx troupe worker --agents ./team.ts --queues browser=2@30/m,mail --concurrency 20 --metrics-port 9464
  $ npx troupe worker --ask --files ./docs --model offline

Any number of workers with the same agent file may share a Redis. When one leaves or dies, the others continue its work. A
client with the same --redis, --prefix and --store sends its turns to them. On SIGTERM or Ctrl-C a worker takes no new work, waits
for model calls in flight, stops turns at the next safe point for others to continue, and exits with code 0 within
--drain-seconds. A second signal leaves at once; committed work is not lost.

Environment:
  TROUPE_REDIS          address of Redis, if --redis is not given
  TROUPE_QUEUE_SECRETS  ID:SECRET, several separated by commas: the first signs jobs, any of them verifies;
                        all workers and clients need the same secrets (default: jobs are not signed)
  OPENAI_API_KEY and others that the agent file reads
`;

export const queues = `
Examples:
  $ npx troupe queues
  $ npx troupe queues --redis redis://127.0.0.1:6379 --json

Dead letters are jobs that were given up: they failed permanently, took too long, or killed their worker too often. The agent
got the failure as the result. With TROUPE_QUEUE_SECRETS, jobs without a valid signature are shown without their content.
`;

export const requests = `
Examples:
  $ npx troupe requests
  $ npx troupe requests --json
  $ npx troupe requests --all --store ./jobs.db
  $ npx troupe requests --redis redis://127.0.0.1:6379 --limit 200

Shows a page at a time, and below it the command for the next one. With --json that command goes to standard error, and
each line has a "cursor" for --after.
`;

export const schedule = `
Examples:
  $ npx troupe schedule list
  $ npx troupe schedule show report --store ./jobs.db
  $ npx troupe schedule add report "Write the report." --agent desk --cron "0 9 * * MON-FRI" --timezone Europe/Berlin
  $ npx troupe schedule run-now report
  $ npx troupe schedule pause report --redis redis://127.0.0.1:6379

The processes that run the agents open the turns at their times, for instance \`serve\` or a worker.
`;

const decided = `
If a live process runs the agent, that process continues it. Otherwise this one does, with the file that the agent was
started with or with --agents; --no-run only records the decision. A request is decided once: a later decision gets exit
code 2 and the name of the person who decided. If the program has a rule on who may decide (mayDecide), the agent file must export
it; without it nothing is decided.

${exitCodes}
`;

export const approve = `
Examples:
  $ npx troupe approve
  $ npx troupe approve run-mibodu#1:1:0:1 --by anna
  $ npx troupe approve run-mibodu --edit '{"to":"Ann","amount":5}'
${decided}`;

export const reject = `
Examples:
  $ npx troupe reject --reason "too much"
  $ npx troupe reject run-mibodu --no-run
${decided}`;

export const answer = `
Examples:
  $ npx troupe answer "on Fridays"
  $ npx troupe answer run-mibodu '{"rows":3}'
  $ npx troupe answer run-mibodu "the scanner is broken" --error
${decided}`;

export const list = `
Examples:
  $ npx troupe list
  $ npx troupe list --store ./jobs.db --json
  $ npx troupe list --limit 200

Shows a page at a time, and below it the command for the next one. With --json that command goes to standard error, and
each line has a "cursor" for --after.
`;

export const show = `
Examples:
  $ npx troupe show ask-mibodu
  $ npx troupe show ask-mibodu~3fa9c1 --full
  $ npx troupe show ask-mibodu --json
  $ npx troupe show ask-mibodu --summary
  $ npx troupe show --budget
`;

export const resume = `
Examples:
  $ npx troupe resume
  $ npx troupe resume ask-mibodu
  $ npx troupe resume run-mibodu --max-tokens 50000
  $ npx troupe resume desk-7 --store ./jobs.db --agents ./my-agent.ts

An agent whose turn was stopped by a limit continues with a new budget; the limits of an open turn do not change.
For agents that ask, run or chat started no file is needed; for others name the file with --agents.

${exitCodes}
`;

export const deletion = `
Examples:
  $ npx troupe delete ask-mibodu
  $ npx troupe delete ask-mibodu run-kavuna --yes
  $ npx troupe delete --owner ann --dry-run
  $ npx troupe delete --owner ann --abort --forks --yes
  $ npx troupe delete --owner ann --agents ./my-agent.ts --yes

Journal, messages, artifacts, accounts, requests, timers, webhooks and queued jobs of the whole tree are deleted. A line
without content stays, which \`audit\` shows; the id cannot be used again. A command that was killed is finished by the
same command. Files that were exported, and backups of the store, are yours to delete. What plugins and tools keep outside of
the store, such as memories and logins, is deleted only with --agents FILE, which names the file with the definitions.
`;

export const prune = `
Examples:
  $ npx troupe prune --older-than 30d --dry-run
  $ npx troupe prune --older-than 30d --yes
  $ npx troupe prune --older-than 12h --redis redis://127.0.0.1:6379 --yes --json

The age counts from the last activity in the whole tree. Agents with an open turn or an open request stay. Schedules that ended so
long ago are deleted too. With --agents FILE, plugins forget what they keep of the deleted agents outside of the store.
`;

export const fork = `
Examples:
  $ npx troupe fork run-mibodu --at 2:3 --model gpt-5-mini
  $ npx troupe fork run-mibodu --at 1:1 --input "Refund only the first order."
  $ npx troupe fork run-mibodu --at 2 --input "And now in French." --keep
  $ npx troupe fork ./run.json --at 1:2 --agents ./my-agent.ts --allow search --json

The fork runs live with the same past, on an unused budget. A tool of class keyed or once, a client tool and a tool of the
provider do not run: a call gets the recorded result of a call with equal arguments, otherwise an error for the model.
--allow names those that really run.

${exitCodes}
`;

export const abort = `
Examples:
  $ npx troupe abort ask-mibodu
  $ npx troupe abort ask-mibodu --reason "wrong folder"

The abort is stored: a process that runs the agent ends the turn within moments, otherwise the next one that resumes it.
`;

export const steer = `
Examples:
  $ npx troupe steer ask-mibodu "Use the blue one."
  $ npx troupe steer ask-mibodu "Use the blue one." --key note-7

The text is stored: the process that runs the agent gives it to the open turn, whose next model call sees it. Running tools finish
first. If the turn makes no further model call, or none is open, the text opens the next turn. With a key the command can be repeated.
`;

export const budget = `
Examples:
  $ npx troupe budget
  $ npx troupe budget --owner ada --json
  $ npx troupe budget desk-7 --max-cost 5
  $ npx troupe budget desk-7 --max-tokens 2000000 --deadline none
  $ npx troupe budget owner:perDay:ada --max-cost 3

Without an agent or account it lists the accounts of owners and of the tenant: each limit with what is used, reserved and left, and when it renews.
With one it changes limits of the whole lifetime of an agent or subagent; other limits remain. The new limits apply
from now on, also for a turn that is open. The change is stored at once and journalled by the process that runs the agent.
For one more turn, pass the limits to \`resume\`. To an account above the agents the amounts are added until it renews.
`;

export const forecast = `
Examples:
  $ npx troupe forecast
  $ npx troupe forecast --owner ada
  $ npx troupe forecast desk-7

For each limit: what is used and reserved, when the account renews, what will be used by then at the present rate, and when the limit will be met.
The rate is what was used, divided by the time since the account's window, or the account itself, began. With an agent: the accounts of its tree.
`;

export const serve = `
Examples:
  $ npx troupe serve ./my-agent.ts
  $ npx troupe serve ./agent.yaml --port 9000
  $ npx troupe serve ./team.ts ./agent.yaml --redis redis://127.0.0.1:6379 --on workers
  $ npx troupe serve ./my-agent.ts --surfaces api,teal
  $ npx troupe serve ./agent.yaml --host 0.0.0.0 --auth entra --hosts api.example.com --proxies 1 --log

Prints the address of each surface, a token and a command to try. The page at / shows the agents at work, and you can talk
to them there; its address contains the token, so treat it as a password. Agents are kept in ./.troupe/serve.db unless a store is
named; work interrupted by a crash continues at the next start. SIGTERM ends streams, stops turns at a safe point and
exits 0.

Environment:
  TROUPE_SERVE_TOKEN      the token, of at least 16 characters (default: a new one at each start)
  TROUPE_ENTRA_TENANT     with --auth entra: the id of the directory
  TROUPE_ENTRA_AUDIENCE   with --auth entra: the application that tokens are issued for; several separated by commas
  TROUPE_ENTRA_SCOPE      with --auth entra: a scope or role that tokens must have (default: any)
  TROUPE_WEBHOOK_KEY      the key that encrypts receivers' credentials: 32 bytes in base64 (default: no webhooks)
  TROUPE_STUBS_SECRET     the secret of tests that create agents with stubs (default: stubs are refused)
`;

export const mcpServe = `
Examples:
  $ npx troupe mcp serve ./my-agent.ts
  $ npx troupe mcp serve ./team.ts --actor ann --store ./team.db

In the configuration of an MCP client:
  { "mcpServers": { "team": { "command": "npx", "args": ["troupe", "mcp", "serve", "/path/to/team.ts"] } } }

Each agent is a tool. Only messages of the protocol are written to standard output; the output of your code goes to standard
error. Agents are kept in ./.troupe/mcp.db unless a store is named. When the client closes standard input, or at SIGTERM, turns
stop at a safe point; unfinished turns continue at the next start.
`;

export const inspect = `
Examples:
  $ npx troupe inspect
  $ npx troupe inspect ask-mibodu --open
  $ npx troupe inspect --redis redis://127.0.0.1:6379 --read-only
  $ npx troupe inspect run.json
  $ npx troupe inspect --evals now.json --compare before.json --store ./evals.db

Serves a page on this machine only and prints its address, which contains a token: treat it as a password. Other processes
may run the agents meanwhile. To decide requests with a mayDecide rule, name its file with --agents.
Press Ctrl-C to stop.
`;

export const exporting = `
Examples:
  $ npx troupe export ask-mibodu --json run.json
  $ npx troupe export ask-mibodu --html run.html
  $ npx troupe export ask-mibodu --trace trace.json --names-only

The file of --html is the inspector's page with the run in it; it needs no network. Without
--names-only it contains all texts of people, models and tools. Open the file of --json with \`inspect run.json\`, that
of --trace with chrome://tracing or https://ui.perfetto.dev.
`;

const mcpFiles = `
The servers are read from mcp.json, or the file in --config, in the format of editors: "mcpServers" or "servers" with
command, args, env, url and headers; \${NAME}, \${NAME:-default} and \${env:NAME} are variables of the environment,
\${input:ID} is TROUPE_INPUT_ID. Options of troupe are in "troupe": { "trust", "approval", "tools", "pin", "auth" }.
`;

export const mcp = `
Examples:
  $ npx troupe mcp list
  $ npx troupe mcp pin
  $ npx troupe mcp check
  $ npx troupe mcp call files read_file --args '{"path":"README.md"}'
  $ npx troupe mcp login desk
${mcpFiles}
${exitCodes}
`;

export const mcpList = `
Examples:
  $ npx troupe mcp list
  $ npx troupe mcp list --config .vscode/mcp.json --json

APPROVAL: whether a person has to approve calls. PIN: pinned; changed, added or removed since it was pinned; or unpinned. Exit
code 1 if a server cannot be used.
${mcpFiles}`;

export const mcpPin = `
Examples:
  $ npx troupe mcp pin
  $ npx troupe mcp pin files docs
  $ npx troupe mcp pin --config .vscode/mcp.json --lock mcp.lock.json

Starts the servers, and writes the definitions of their tools to the lock file, for review and commit. Agents then get these
definitions, and calls of a tool that its server has changed are refused. Nothing is written if a server cannot be used. The
file has no secrets, paths or variables.
${mcpFiles}`;

export const mcpCheck = `
Examples:
  $ npx troupe mcp check
  $ npx troupe mcp check files --json

Exit codes: 0 the definitions are as pinned, 1 they differ or a server cannot be used, 2 wrong usage or a damaged lock file.
${mcpFiles}`;

export const mcpLogin = `
Examples:
  $ npx troupe mcp login desk
  $ npx troupe mcp logout desk --config .vscode/mcp.json

For servers with "troupe": { "auth": { "oauth": {} } }. Logins are kept in ~/.troupe/mcp-tokens, or the folder in
TROUPE_MCP_TOKENS, encrypted with TROUPE_MCP_TOKEN_KEY, else with a key in the same folder. All commands use them. A logout
forgets the login here, and does not revoke it.
${mcpFiles}`;

export const mcpCall = `
Examples:
  $ npx troupe mcp call files list_directory --args '{"path":"."}'
  $ npx troupe mcp call till pay --args '{"amount":5}' --yes
  $ npx troupe mcp call camera shoot --save ./pictures

Calls that need an approval are asked about; without a terminal they need --yes. Ctrl-C cancels the call at the server. The exit
code is 1 if the tool reports an error.
${mcpFiles}`;

export const replay = `
Examples:
  $ npx troupe replay ask-mibodu --agents ./my-agent.ts
  $ npx troupe replay run.json --agents ./my-agent.ts --json

Steps the run through its journal and compares prompts, tools, settings, hooks and arguments with those of the agent file.
Answers, results and decisions are the recorded ones. Prints the first difference. Exit code 0: equal; 1: it diverges; 2: it
cannot be replayed.
`;

export const checkUpgrade = `
Examples:
  $ npx troupe check-upgrade --agents ./new-agent.ts --store ./jobs.db
  $ npx troupe check-upgrade --agents ./new-agent.ts --redis redis://127.0.0.1:6379 --last 100 --json

Replays the newest runs against the agent file: how many ask the same, how many differ and from which step on, which open
turns go on, and which lack a tool. No model is called, no tool and no hook runs, nothing is written. Exit code 0: all ask the
same and all open turns go on; 1: not so; 2: the runs cannot be checked.
`;

export const audit = `
Examples:
  $ npx troupe audit ask-mibodu
  $ npx troupe audit ask-mibodu --verify --head 3f0c…
  $ npx troupe audit ask-mibodu --file audit.json --html audit.html --without-content
  $ npx troupe audit ask-mibodu --verify --earlier audit.json
  $ npx troupe audit audit.json --verify --head 3f0c…

Keep the printed head where those who can write the store cannot. Without --head only contradictions within the run are found.
Exit code 0: the run fits; 1: it is broken; 2: it cannot be verified.
`;

export const evaluating = `
Examples:
  $ npx troupe eval ./evals
  $ npx troupe eval ./evals --repeat 5 --concurrency 4 --min-pass 0.8 --json now.json
  $ npx troupe eval ./evals --repeat 5 --compare before.json --html report.html
  $ npx troupe eval ./evals/refunds.eval.ts --keep ./evals.db

A case is a test of vitest that calls runCase(); the matchers for its result are there without an import. A case that fails in some
runs is flaky. Models that call a server do not run while the environment variable CI is set: record them, or give --live.
Ctrl-C and --max-cost end it after the cases that run, and it writes the report of the cases that have ended.
Exit code 0: enough runs passed; 1: fewer than --min-pass, an error outside of the cases, or --max-cost was reached before the end; 2: nothing could be run; 130: interrupted.
`;

export const estimate = `
Examples:
  $ npx troupe estimate ./my-agent.ts --input "Which files mention budgets?"
  $ npx troupe estimate ./my-agent.ts --model openai/gpt-5-mini --last 500 --store ./jobs.db
  $ npx troupe estimate ./my-agent.ts --model my-model --price '{"inputPerMillion":0.25,"outputPerMillion":2}' --json

From the newest recorded turns of this agent, with all work of its subagents: steps, tokens, cost and time, the share that a
budget stopped, and budgets that fit. Turns of other versions of the definitions are listed apart. Exit code 0: there are
recorded turns; 1: there are none of today's definitions; 2: the forecast cannot be made.
`;
