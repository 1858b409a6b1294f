/**
 * Names that the command line imports from folders although no entry of the package exports them, by reason. It uses public
 * names for everything that runs agents; these show the contents of a store while no runtime, or another process, owns
 * them.
 */
export const cliExceptions: Readonly<Record<string, readonly string[]>> = {
  "reads a store without a runtime: the tenant of its keys, and whether the process that holds an agent is alive": [
    "DEFAULT_TENANT",
    "currentProcess",
    "isRunning",
  ],
  "parses and formats stored ids and cursors": ["agentOfTurn", "numberOfTurn", "parseCursor", "rootOf", "turnIdOf"],
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
  "directs runCase() in the processes of evals": ["EVAL_NOT_RUN", "evalVariables", "readEvalSpending"],
  "forks a run from a file, whose metadata names the agent file": ["readRunFile"],
  "names where a fork left its origin": ["ForkedFrom"],
  "shows how the stubs of a session were used": ["stubReportOf"],
  "decides a request in the store if no process runs its agent": ["Requests", "verdictsOf"],
  "lists and changes the schedules of a store": ["scheduleOptionsOf", "StoredSchedules"],
  "gives an input to an agent that another process runs": ["storedSteerOf", "SteerMeaning"],
  "changes a budget in the store if no process runs its agent": [
    "assertBudgetSet",
    "BudgetChange",
    "limitsChangeOf",
    "limitsChangeText",
  ],
  "lists the agents and queues of a worker": ["collectDefinitions"],
  "names the files of messages": ["fileMark"],
  "parses JSON that a person typed": ["jsonSchema"],
  "suggests the closest known word": ["nearestName"],
  "names files like the stores, and reports a full disk": ["databasePath", "describeFileError", "isNoSpace"],
  "quotes words of a command line like the errors of the package": ["shellWord"],
  "uses the system clock for drawing": ["systemClock"],
  "runs the demo: `ask`": ["askTeam", "documentModel"],
  "adds the tools of MCP servers to the agents of a file": ["withAddedTools"],
  "lets a login return to this machine only": ["isLoopbackName"],
};

/** The same for the server, which may import anything from `base`, `errors`, `net` and `redis`: they contain nothing about agents. */
export const serverExceptions: Readonly<Record<string, readonly string[]>> = {
  "validates stored values with their own schemas": [
    "accountSchema",
    "agentStateJsonSchema",
    "amountsSchema",
    "jsonObjectSchema",
    "jsonSchema",
    "limitNameSchema",
    "modelUseSchema",
    "newSessionStubsSchema",
    "sessionStubSchema",
  ],
  "checks and names the files of messages": ["checkedFilePart", "dataOf", "fileMark", "FilePart", "withoutContents"],
  "returns values and filters of a runtime": ["TreeSnapshot", "TurnFilter"],
  "converts the stored events of a turn as its stream does": ["eventsOfRow"],
  "checks options of a program as the runtime does": ["assertSameStubs", "budgetRule"],
  "parses stored ids and cursors": ["agentOfTurn", "numberOfTurn", "parseCursor", "turnIdOf"],
  "requires a common key where other processes may serve the same agents": ["areShared"],
  "sends the events in the journal of a tree to webhooks": ["JournalRow", "TreeWebhooks", "watchTreeOf"],
};
