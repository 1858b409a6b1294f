/** The public names of each entry, written out: a name is public if it is in this list, in the entry, and in docs/reference.md. */
export const publicNames: Readonly<Record<string, readonly string[]>> = {
  troupe: words(`
    Account Agent AgentBusyError AgentDefinition AgentDeletedError AgentLoop AgentMetadata AgentNotStartedError AgentOptions AgentOverview
    AgentRequest AgentStartOptions AgentStatus AgentStopError AgentTool AlreadyOwnedError approval Artifact
    ArtifactStore askUser Auth AuthRequest bindThinking Budget BudgetOverview CallSettings ClientTool clientTool Clock Compaction CompactionInput
    CompactionStrategy CompileInput Content ContentPart ContextTooLongError contextWarning CorruptRecordError
    createAgent createAgentLoop CreateAgentOptions createRuntime DataSubject Decide DecisionAttempt defineAgent defineTool
    DeletedTree Deletion DeletionReport DrainReport dropOldest EffectClass elideResults ErrorFamily EventObserver fallbackModel fullHistory GenerateOptions getRuntime HistoryCompiler Hook
    HookContext HookDrafts HookName Hooks InstructionsContext InvalidInputError JobStoppedError Json JsonObject
    LanguageModel LeaseLostError LimitName LimitStop localQueues LoopMessage LoopResult LoopTurn memoryStores Message
    MessageCompaction MessageStore ModelCallIdentity ModelChoice ModelDelta ModelError ModelRequest ModelResponse ModelUse noProgressGuard
    formatAgentCursor formatTurnCursor NotFoundError offlineModel openaiModel OpenaiModelOptions OutcomeUnknownError
    Overview OverviewState OwnerDeletionReport Plugin PolicyRefusedError PreviousTool Price PriceTable
    ProjectionContext Projections QueueCount QueueHealth Queues reactHistory Reconciliation reflection
    RequestConflictError RetentionOptions routedModel run RunContext RunOptions Runtime RuntimeHealth RuntimeMetrics
    RuntimeOptions SavedArtifact scheduleTurn SpawnedAgent SpawnedChild
    Spending StateStore StopReason StopSignal StoredError StoreRolledBackError Stores StoreUnavailableError SessionStub StubMismatch StubMismatchError StubReport StubUse subagent
    SubagentOptions SubagentTool summarize textOf Tool ToolDefinition toolLogging ToolNotStartedError ToolResult toolResult ToolResultPart totalUse
    TraceEntry TraceHeaders TroupeError TroupeEvent TroupeEventOf trust Turn TurnConflictError TurnContext TurnFailedError
    TurnInterruptedError
    DeepPartial SteerAnswer TurnOptions TurnRest TurnResult TurnSpending TurnWaitingError UnsupportedError Usage UseByModel WaitingTurn
    windowHistory withoutTraces
  `),
  "troupe/react": words(`
    agentTransition AgentTransitionOptions effectsAt initialAgentState InitialAgentStateOptions isLlmCallDue
    ReactContext reactContextSchema ReactEffects ReactInput reactInputSchema ReactMessage reactMessageSchema
    ReactObservation reactObservationSchema ReactRecordedResult reactRecordedResultSchema ReactState reactStateSchema
    ReactToolCallRecord reactToolCallRecordSchema ReactToolCallRequest reactToolCallRequestSchema ReactToolCallResult
    reactToolCallResultSchema ReactToolDefinition reactToolDefinitionSchema
  `),
  "troupe/state": words(`
    AgentRecord agentRecordSchema agentRequestSchema AgentState AgentStateContext AgentStateJson agentStateJson
    agentStateSchema AgentStateSummary AgentStateView AgentStep agentStepJson agentStepSchema Amounts artifactSchema
    AssistantMessage CallOutcome contentSchema Continuation continuationJson continuationSchema costOfExecution Entry
    EntryOf entrySchema EntryType errorsOf ExecutionState executionStateJson executionStateSchema ExecutionStatus
    FinishReason forNextExecution Inference isEmpty isExhausted lastStepOf Lifecycle lifecycleSchema Limits limitsJson
    limitsOf limitsSchema LlmConfig MaterialisedExecution MaterialisedStep MaterialisedStepExecution MessageMetadata
    messageSchema modelRequestSchema modelResponseSchema NewAgentState newAgentState Remaining remaining RequestKind
    RequestVerdict ResponseFormat Schedule ScheduledRun scheduleSchema shouldStop StepExecution stepExecutionJson stepExecutionSchema stepsOf StepType
    stepTypeOf stopReasonOf stopReasons stopReasonSchema stopSignalSchema storedErrorSchema strongestSignal
    SystemMessage ToolCallRequest ToolExecution toolExecutionJson toolExecutionSchema ToolMessage traceEntrySchema
    troupeEventSchema TroupeEventType TurnRecord turnRecordSchema unlimited usageOf usageSchema UserMessage viewAgentState wasForceStopped
    withAddedMessages withContext withEntry withLlmConfig withMetadata withNewExecution
  `),
  "troupe/stores/memory": words(`
    memoryStores
  `),
  "troupe/stores/sqlite": words(`
    SqliteOptions sqliteStores
  `),
  "troupe/stores/redis": words(`
    redisStores RedisStoresOptions
  `),
  "troupe/stores/postgres": words(`
    postgresStores PostgresStoresOptions
  `),
  "troupe/queues/bullmq": words(`
    bullmqQueues BullmqQueuesOptions PostgresQueuesOptions SigningKey
  `),
  "troupe/models/ai-sdk": words(`
    AiSdkLanguageModel aiSdkModel AiSdkModelOptions ProviderOptions
  `),
  "troupe/inspector": words(`
    AuditAgent AuditDefinition AuditedAccount AuditedApproval AuditedEffect AuditedPrompt AuditFile AuditLink AuditMessage AuditProblem AuditReport
    AuditRequest auditFileSchema auditRun AuditRunOptions AuditSource DeletionAudit pageOfAudit readAudit Sealed verifyAudit verifyDeletion VerifyAuditOptions withoutContent
    AbortBody Actor ActorFrame AgentBody AgentMachines AgentUse ArtifactView CallDetail ClientMessage createInspector
    DecisionBody EvalRun Evals EvalsSource Failure Feed FeedAgent FeedEntry FeedInfo FeedMessage FeedMessageItem FeedOptions FeedOwner FeedProcess FeedRow FeedServer
    FeedServerOptions FeedSink FeedSource ForkBody ForkOrigin Forks importRun InspectionFrame Inspector InspectorOptions inspectorRoutes
    InspectorRoutesOptions InspectorServer InspectorServerOptions LiveEvent MessagePage MountedInspector OwnerRow ReportedRun
    PageData pageOfRun ProcessRow Prompt PromptRow QueueRow RowView RunFile runFileSchema RunForkPoint RunForks RunHead RunPage RunReplay RunRow RunSummary runtimeActor RunWatch ScheduleRow Scope
    SearchHit SearchPage serveFeed serveInspector StartedInspector startInspector StartInspectorOptions storeActor
    StepContents StepPage StoreActorOptions StoredAccounts SummaryAnswer SummaryFact SummaryPlace Talk Tokens TraceEvent traceOfRun Transition TransitionPage TurnAnswer TurnBody
  `),
  "troupe/server": words(`
    A2aServed A2aSkill a2aSurface A2aSurfaceOptions agentIdOfName agUiSurface AgUiSurfaceOptions AiSdkData AiSdkMetadata aiSdkSurface AiSdkSurfaceOptions AiSdkUsage apiSurface ApiSurfaceOptions assertCanListen Authenticate Call Caller entraAuth EntraAuthOptions eventFrame Failure Identity InputIssue
    IssuedTicket jsonFailure Listening ListenOptions loadTealAgent LogLine LookupAddresses MetricsAccess MountedHandlers NameScope NewWebhook nodeListener Notification openaiSurface OpenAiSurfaceOptions openAuth Page RateRedis RedisSharing redisSharing RedisSharingOptions RequestKey resumePoint Route route
    RuntimesByTenant RuntimeServer ServeLimits ServeOptions ServerError serveRuntime SseFrame StartedTurn StubOptions Surface TealAgent
    tealAgentFileSchema TealAgentOptions tealCatalogSchema TealMetadata TealModelOptions TealServed tealSurface TealSurfaceOptions TellingStep TicketStore tokenAuth
    TokenAuthOptions Webhook WebhookRegistry WebhookForm WebhookOptions WebhookSubject
  `),
  "troupe/client": words(`
    AgentHandle AgentInfo AgentSnapshot AgentView TurnSettings BudgetInput CallOptions ClientErrorOptions ClientHeaders ClientOptions ClientTool
    createClient DefinitionInfo DeletedAgent ExecuteTurnOptions FollowOptions KeyedOptions ListOptions ListPage
    NewAgent NewSchedule RequestDecision ScheduledRunInfo ScheduleHandle ScheduleInfo SteerResult
    SessionStub ShownAgent StubMismatch StubReport StubUse TreeInfo TroupeClient TroupeClientError TurnHandle TurnInfo TurnOutcome TurnRequest TurnSummary
  `),
  "troupe/client/react": words(`
    AgentConversation useAgent
  `),
  "troupe/a2a": words(`
    remoteAgent RemoteAgentOptions RemoteAuth RemoteTask RemoteUsage
  `),
  "troupe/kit": words(`
    artifactFiles bubblewrap BubblewrapOptions CheckedCall CommandEnd deferredTools DeferredToolsOptions fileNotes folder FolderEntry guard GuardContext GuardedPlace GuardedResult GuardOptions GuardVerdict
    ListedSkill memory Memory MemoryKey memoryNotes MemoryOptions MemoryRecall MemoryStore moderation processMemory sqliteMemory SqliteMemory SqliteMemoryOptions
    ModerationOptions Note notes NotesKey NotesOptions NotesStore PersonalData piiGuard PiiGuardOptions PluginGuards shell ShellCommand ShellOptions
    ShellToolOptions SkillContent skillHeadSchema skills SkillSource todos TodosOptions tripwire TripwireOptions workspace WorkspaceFiles WorkspaceOptions
  `),
  "troupe/mcp": words(`
    checkMcpPins fileMcpTokens FileMcpTokensOptions ListedSkill mcp McpAuth McpAuthorizationError McpClientCredentials
    McpConfigOptions mcpConfigSchema McpConfigTools McpEra mcpFromConfig McpHeaders McpInputOptions mcpLockSchema McpLogins mcpLogins mcpLoginsFromConfig McpOAuthClient
    McpOAuthOptions McpOptions McpOwner McpPinOptions McpPrompt McpPromptMessages McpRequestOptions McpResource
    McpResources McpResourceTemplate McpRoot McpSamplingOptions McpServerError McpServerOverride McpServerReport
    McpTokenKey McpTokenStore McpToolChange McpToolOptions McpToolReport McpTools memoryMcpTokens pinMcp SkillContent SkillSource
  `),
  "troupe/mcp/server": words(`
    McpServed McpServing McpStdio McpStdioOptions mcpSurface McpSurfaceOptions McpToolsOptions serveMcp ServeMcpOptions
  `),
  "troupe/telemetry": words(`
    createRedactor EventFeed JournalSource LogOptions OpenTelemetryOptions Redactor RedactorOptions renderTrace
    RenderTraceOptions SessionMessage SessionRecord sessionRecord SessionRecordOptions SessionTurn sessionYaml Telemetry
    terminalLog TerminalLogOptions textLog TextLogLocation traceToOpenTelemetry yamlSession YamlSessionOptions
  `),
  "troupe/testing": words(`
    CaseResult CasesFilter casesFrom CaseToolCall checkUpgrade CheckUpgradeOptions createFakeClock Distribution
    DivergedPart Estimate estimate EstimateOptions EvalCase evalCasesSchema FakeClock fork Fork ForkEdit ForkOptions ForkPoint judge
    JudgedCriterion JudgeOptions modelRecordingSchema ModelScript NotCompared OpenTurnCheck OriginTurn OtherTurns Quantile readCases
    ReadCasesOptions recordedModel RecordedModelOptions RecordingSource replay ReplayComparison ReplayDivergence
    ReplayOptions ReplayResult runCase RunCaseOptions ScriptedAnswer ScriptedCall ScriptedModel scriptedModel
    ScriptedModelOptions ScriptedReply ScriptedToolCall Share simulate SimulatedAct SimulatedAnswer SimulatedCall
    SimulatedConversation SimulatedDeath SimulatedDecision SimulatedEffect SimulatedProgram SimulatedProgramCall
    SimulatedRun SimulatedRunCall SimulatedSurroundings SimulatedTool SimulatedTurn SimulateOptions simulateUser
    SimulateUserOptions SimulationCase SimulationReport StoredCase StoredRecording StoredTree SuggestedLimit
    SupposedModel ToolStub TranscriptEntry TurnFigures UpgradeDifference UpgradeReport Verdict WhatIf withModel
    WithModelOptions withTools
  `),
  "troupe/testing/matchers": words(`
    AtMost CaseFigures EvalMatchers ExpectedToolCall ToolCallsOptions
  `),
};

function words(text: string): readonly string[] {
  return text.trim().split(/\s+/);
}

/** Types whose members are private: users get them from a function and pass them on. */
export const opaqueTypes: readonly string[] = words(
  `AgentDefinition AgentTool ClientTool Queues StoredTree Stores SubagentTool Tool`,
);

/**
 * Types in a public signature that have no public name: users write them inline as the options of one
 * function, or reach them through their owner (`HookDrafts["beforeLlm"]`, `Runtime["role"]`).
 */
export const unnamedTypes: readonly string[] = words(`
  ScheduleOptions Schedules ScheduleTurnOptions TurnSchedules
  DefinitionRef MessageQuery RunQuery SearchQuery
  BudgetLeft FallbackModelOptions ModelTool RoutedModelOptions
  AccountLimits AccountListOptions AgentListOptions AgentListCursor ArtifactInput AskUserOptions AutoCompactOptions AwaitOptions CheckedArguments ClientToolDefinition
  BudgetChange DropOldestOptions ElideResultsOptions FollowOptions GenerateInput GetRuntimeOptions GetMessagesOptions HealthOptions LocalQueuesOptions ModelErrorOptions OfflineModelOptions
  PauseOptions WindowHistoryOptions ReactHistoryOptions RequestListOptions DeleteOptions DeleteOwnerOptions DeletedCounts ResumeOptions RuntimeDrainOptions RuntimeSettings SecretResolver SpawnAgentOptions
  AgentLoopOptions LeftBehind RuntimeShutdownOptions SpawnOptions SubagentPolicy SummarizeOptions ToolArguments ToolParameters TreeSnapshot TroupeErrorOptions
  AnswerSource BoundPrompt ThinkingReader ModelWarning ReasoningEffort ToolChoice TurnError SteerOptions TurnListOptions TurnNow TurnListCursor WorkOf WorkWatch StructuredOutput OutputOf ValueOf ValueSchema

  ApprovalOptions ContextWarningOptions NoProgressGuardOptions ReflectionOptions ToolLoggingOptions TrustOptions

  AfterEachToolDraft AfterLlmDraft AfterToolsDraft AfterUserInputDraft BeforeEachToolDraft BeforeLlmDraft BeforeToolsDraft OnCompleteDraft
  OnErrorDraft OneOrMore RegisteredTool

  AskedRequest AskInput BillInput ToolAnswer
  AwaitedChild DeepReadonly ErrorDetails JobStop BudgetOverviews
  OverviewPart OverviewSnapshot Role RunAgent

  DefectError RejectionError TerminalError TransientError

  CallerDependencies CallerSchedules Identify NewAgentOptions Output PageOptions RedisClient RequestPart RouteSchemas RouteShape ServerErrorCode
  ServerErrorOptions StartTurnOptions TurnFilter

  EventFrame FrameBase FrameListener FrameSnapshot PostgresLocationOptions RedisLocationOptions SnapshotFrame
`);
