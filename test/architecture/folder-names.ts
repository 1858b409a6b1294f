/**
 * Names that the command line takes from the folders although no entry of the package has them, by their reason. It uses public
 * names for everything that runs agents; these are what it needs beyond that to show what a store holds while no runtime owns
 * it, or another process does.
 */
export const cliExceptions: Readonly<Record<string, readonly string[]>> = {
  "reads a store without a runtime: the tenant of its keys, and whether the process that holds an agent is alive": [
    "DEFAULT_TENANT",
    "currentProcess",
    "isRunning",
  ],
  "takes stored ids and cursors apart, and puts them together": [
    "agentOfTurn",
    "numberOfTurn",
    "parseCursor",
    "rootOf",
    "turnIdOf",
  ],
  "folds stored entries as a runtime folds live ones: events, overview, status, trace": [
    "endOfTurn",
    "entriesOfTurn",
    "eventsOfRow",
    "noteAgentEvent",
    "promptOf",
    "statusOf",
    "traceEntriesOf",
  ],
  "adds up stored accounts and calls": [
    "addUse",
    "dollarsText",
    "limitNameSchema",
    "ownUse",
    "spendingByAgent",
    "usedAt",
  ],
  "decides a request in the store, when no process runs its agent": ["Requests", "verdictsOf"],
  "changes a budget in the store, when no process runs its agent": [
    "assertBudgetSet",
    "BudgetChange",
    "limitsChangeOf",
    "limitsChangeText",
  ],
  "lists the agents and queues that a worker knows": ["collectDefinitions"],
  "checks JSON that a person typed": ["jsonSchema"],
  "finds the word that a person meant": ["nearestName"],
  "names files as the stores do, and a full disk": ["databasePath", "describeFileError", "isNoSpace"],
  "draws by the clock of the system": ["systemClock"],
  "runs the demo: `ask`": ["askTeam", "documentModel"],
};

/** The same for the server, which takes what it likes from `base`, `errors` and `redis`: they know nothing of agents. */
export const serverExceptions: Readonly<Record<string, readonly string[]>> = {
  "shows stored values, by their own schemas": [
    "accountSchema",
    "agentStateJsonSchema",
    "amountsSchema",
    "jsonObjectSchema",
    "jsonSchema",
    "limitNameSchema",
    "modelUseSchema",
  ],
  "hands on what a runtime gives, and its filters": ["TreeSnapshot", "TurnFilter"],
  "reads the stored events of a turn as a stream of them gives them": ["eventsOfRow"],
  "checks options of a program as the runtime does": ["budgetRule"],
  "takes stored ids and cursors apart": ["agentOfTurn", "numberOfTurn", "parseCursor", "turnIdOf"],
  "tells receivers what the journal of a tree says": ["JournalRow", "TreeWebhooks", "watchTreeOf"],
};
